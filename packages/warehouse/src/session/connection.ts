import { Agent } from "node:https";
import { type ClickHouseClient, type ClickHouseSettings, createClient } from "@clickhouse/client";
import { pinned } from "./pinned-settings.ts";
import { isAwayError, toWarehouseError } from "./warehouse-error.ts";

export type WarehouseAccess = {
  /** `http://user:password@host:port/database`, or `https:` */
  readonly url: string;
  /** PEM; default: Node's. */
  readonly ca?: string | undefined;
  readonly application: string;
  readonly settings?: ClickHouseSettings | undefined;
};

type ConnectionOptions = WarehouseAccess & {
  readonly maxOpenConnections: number;
  readonly requestTimeoutMs: number;
  readonly keepAlive?: boolean;
};

const EVERYWHERE: ClickHouseSettings = {
  ...pinned,
  date_time_input_format: "best_effort",
  // Before 25.11 an error within JSON looks like a row by default.
  http_write_exception_in_output_format: 0,
  // INSERTs wait for shards, subqueries read all, and a missing shard fails the query.
  distributed_foreground_insert: 1,
  parallel_distributed_insert_select: "0",
  distributed_product_mode: "global",
  skip_unavailable_shards: 0,
};

/** @throws TypeError for an invalid URL */
export function connect(options: ConnectionOptions): ClickHouseClient {
  const url = new URL(options.url);
  const { maxOpenConnections, requestTimeoutMs, keepAlive = true } = options;
  const database = decodeURIComponent(url.pathname.slice(1));
  return createClient({
    url: url.origin,
    username: decodeURIComponent(url.username) || "default",
    password: decodeURIComponent(url.password),
    ...(database === "" ? {} : { database }),
    application: options.application,
    // `tls` would put the raw password into a header, which allows few characters.
    ...(options.ca !== undefined &&
      url.protocol === "https:" && {
        http_agent: new Agent({ keepAlive, maxSockets: maxOpenConnections, ca: options.ca }),
      }),
    max_open_connections: maxOpenConnections,
    request_timeout: requestTimeoutMs,
    compression: { request: false, response: false },
    // Below the server's keep-alive of 10 s, also in a busy process.
    keep_alive: { enabled: keepAlive, idle_socket_ttl: 5_000, eagerly_destroy_stale_sockets: true },
    clickhouse_settings: options.settings ?? EVERYWHERE,
    log: { level: 127 },
  });
}

/** Resolves on any answer, even an error. @throws WarehouseError (`isAwayError`) after `timeoutMs` */
export async function awaitAnswer(deps: WarehouseAccess & { readonly timeoutMs: number }): Promise<void> {
  const client = connect({ ...deps, maxOpenConnections: 1, requestTimeoutMs: deps.timeoutMs });
  try {
    const answer = await client.ping();
    if (answer.success) return;
    const error = toWarehouseError(answer.error);
    if (isAwayError(error)) throw error;
  } finally {
    await client.close();
  }
}
