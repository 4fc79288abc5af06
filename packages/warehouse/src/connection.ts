import { Agent } from "node:https";
import { type ClickHouseClient, type ClickHouseSettings, createClient } from "@clickhouse/client";
import { traceStatements } from "./traced-client.ts";
import { isAwayError, toWarehouseError } from "./warehouse-error.ts";

/** Where ClickHouse is, and who asks it. */
export type WarehouseAccess = {
  /** `http://user:password@host:port/database`, or `https:` */
  readonly url: string;
  /** For `https:`: certificates in PEM of the authorities to trust; absent: those that Node knows. */
  readonly ca?: string | undefined;
  /** Shown in ClickHouse's query log. */
  readonly application: string;
};

export type ConnectionOptions = WarehouseAccess & {
  readonly maxOpenConnections?: number;
  readonly requestTimeoutMs?: number;
  readonly settings?: ClickHouseSettings;
};

const EVERYWHERE: ClickHouseSettings = {
  date_time_input_format: "best_effort",
  // On a cluster: acknowledged means written by the shard, the sharding key decides about every row, a subquery tells
  // what all shards have, and one that does not answer is an error and never an answer without its rows.
  distributed_foreground_insert: 1,
  parallel_distributed_insert_select: "0",
  distributed_product_mode: "global",
  skip_unavailable_shards: 0,
};

/** Opens a pool of HTTP connections to ClickHouse. Throws when the URL is not one. */
export function connect(options: ConnectionOptions): ClickHouseClient {
  const url = new URL(options.url);
  const maxOpenConnections = options.maxOpenConnections ?? 16;
  const database = decodeURIComponent(url.pathname.slice(1));
  const client = createClient({
    url: url.origin,
    username: decodeURIComponent(url.username) || "default",
    password: decodeURIComponent(url.password),
    ...(database === "" ? {} : { database }),
    application: options.application,
    // With `tls` the client writes the password as it is into a header, where not every character may stand.
    ...(options.ca !== undefined &&
      url.protocol === "https:" && {
        http_agent: new Agent({ keepAlive: true, maxSockets: maxOpenConnections, ca: options.ca }),
      }),
    max_open_connections: maxOpenConnections,
    request_timeout: options.requestTimeoutMs ?? 120_000,
    compression: { request: false, response: false },
    // Below the server's keep-alive of 10 s, so that no request meets a socket that is just closing.
    keep_alive: { enabled: true, idle_socket_ttl: 5_000 },
    clickhouse_settings: { ...EVERYWHERE, ...options.settings },
    log: { level: 127 },
  });
  return traceStatements(client, { url, database });
}

/**
 * Resolves when a server answers at the URL, whatever it says. Throws `WarehouseError` (`isAwayError`) when none does
 * within `timeoutMs`: the requests of a store wait much longer, for some of them take long.
 */
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
