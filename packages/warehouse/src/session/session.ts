import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import { unlessAborted } from "@conversation-export/runtime";
import type { Topology } from "../schema/migration-template.ts";
import { type ClusterNames, clusterNames } from "./cluster-names.ts";
import { connect, type WarehouseAccess } from "./connection.ts";
import { createNewerSettings } from "./newer-settings.ts";
import { serverUrls } from "./server-urls.ts";
import { createStatementSpans, type StatementSummary, summaryOf } from "./statement-spans.ts";
import { isReset, timedOut, toWarehouseError } from "./warehouse-error.ts";

/** A constant; in ClickHouse's `log_comment` and in spans. */
export type StatementName = `${string}.${string}`;

export type StatementDefaults = {
  readonly settings?: ClickHouseSettings;
  /**
   * Until the answer is complete, with the wait for a connection; of `chunks` and `stream` until it begins, then per
   * pause.
   */
  readonly timeoutMs?: number;
};

export type StatementOptions = StatementDefaults & {
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  readonly queryPrefix?: string;
  /** Whose share of a keyed quota is used; default: the user's. */
  readonly quotaKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Throws the signal's reason when aborted. A SELECT whose connection breaks early is repeated once.
 * @throws WarehouseError on other errors
 */
export type Session = {
  readonly names: ClusterNames;
  rows<Row>(name: StatementName, query: string, options?: StatementOptions): Promise<Row[]>;
  chunks<Row>(name: StatementName, query: string, options?: StatementOptions): AsyncGenerator<Row[]>;
  /** Must be read to its end or destroyed. `query` names the format. */
  stream(name: StatementName, query: string, options?: StatementOptions): Promise<Readable>;
  command(name: StatementName, query: string, options?: StatementOptions): Promise<void>;
  /** Must be idempotent: on each shard without Keeper, else once; then throws the first error. */
  commandEverywhere(name: StatementName, query: string, options?: StatementOptions): Promise<void>;
  /** One block, acknowledged when written, unless `async_insert` is set. */
  insert(
    name: StatementName,
    into: { readonly table: string; readonly rows: readonly object[] },
    options?: StatementOptions,
  ): Promise<void>;
  upload(name: StatementName, query: string, body: Buffer, options?: StatementOptions): Promise<void>;
  ping(): Promise<void>;
  with(defaults: StatementDefaults): Session;
};

export type OpenSession = Session & { close(): Promise<void> };

/** No statement's timeout is longer. */
const CLIENT_TIMEOUT_MS = 3_600_000;
const DEFAULT_TIMEOUT_MS = 120_000;
const DEFAULT_CONNECTIONS = 16;

type Server = ReturnType<typeof openServer>;

type Sent = {
  readonly query_id?: string;
  readonly http_headers?: Record<string, string>;
  readonly query_params?: Record<string, unknown>;
  readonly clickhouse_settings: ClickHouseSettings;
  readonly abort_signal: AbortSignal;
};

const openServer = (access: WarehouseAccess, maxConnections: number, address?: string) => {
  const options = { ...access, maxOpenConnections: maxConnections, requestTimeoutMs: CLIENT_TIMEOUT_MS };
  return {
    client: connect(options),
    fresh: connect({ ...options, keepAlive: false }),
    spans: createStatementSpans(access.url),
    newerSettings: createNewerSettings(),
    address,
  };
};

const inTime = async <T>(
  server: Server,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: StatementOptions,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  // The client ignores signals that aborted before.
  signal?.throwIfAborted();
  const cancel = new AbortController();
  const onAbort = (): void => cancel.abort(signal?.reason);
  const timer = setTimeout(() => cancel.abort(timedOut(server.address)), timeoutMs);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    // The client ignores its signal once the answer begins.
    return await unlessAborted(send(cancel.signal), cancel.signal);
  } catch (error) {
    // The client's error hides why it was aborted.
    cancel.signal.throwIfAborted();
    throw toWarehouseError(error, server.address);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
};

/** A kept connection that was closed fails at once. */
const RESET_WITHIN_MS = 5_000;

const closeOnAbort = (signal: AbortSignal, close: () => void): void => {
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
};

const run = <T>(
  server: Server,
  name: StatementName,
  statement: string | StatementSummary,
  options: StatementOptions,
  send: (client: ClickHouseClient, sent: Sent) => Promise<T>,
): Promise<T> =>
  inTime(server, options, (signal) => {
    const summarise = () => (typeof statement === "string" ? summaryOf(statement) : statement);
    const attempt = (client: ClickHouseClient): Promise<T> => {
      const queryId = `${options.queryPrefix ?? ""}${randomUUID()}`;
      // A write ticket replaces it: constraints read `log_comment`.
      const settings = server.newerSettings.known({ log_comment: name, ...options.settings });
      const answer = server.spans.around({ name, queryId }, summarise, (extra) =>
        send(client, {
          ...extra,
          ...(options.quotaKey !== undefined && {
            http_headers: {
              ...extra.http_headers,
              "x-clickhouse-quota": encodeURIComponent(options.quotaKey),
            },
          }),
          query_id: queryId,
          ...(options.parameters !== undefined && { query_params: options.parameters }),
          clickhouse_settings: settings,
          abort_signal: signal,
        }),
      );
      return answer.catch((error: unknown) => {
        if (!server.newerSettings.isRefused(error, settings) || signal.aborted) throw error;
        return attempt(client);
      });
    };
    const startedAt = performance.now();
    return attempt(server.client).catch((error: unknown) => {
      // A kept connection may be closed. Later the query may still run.
      const isWorthAnother =
        isReset(error) &&
        performance.now() - startedAt < RESET_WITHIN_MS &&
        summarise().operation === "SELECT" &&
        !signal.aborted;
      if (!isWorthAnother) throw error;
      return attempt(server.fresh);
    });
  });

const commandOn = async (
  server: Server,
  name: StatementName,
  query: string,
  options: StatementOptions,
): Promise<void> => {
  await run(server, name, query, options, (client, sent) => client.command({ query, ...sent }));
};

const viewOf = (
  main: Server,
  shards: readonly Server[],
  names: ClusterNames,
  defaults: StatementDefaults,
): Session => {
  const withDefaults = (options: StatementOptions = {}): StatementOptions => ({
    ...defaults,
    ...options,
    settings: { ...defaults.settings, ...options.settings },
  });

  return {
    names,
    rows: <Row>(name: StatementName, query: string, options?: StatementOptions) =>
      run(main, name, query, withDefaults(options), async (client, sent) => {
        const result = await client.query({ query, format: "JSONEachRow", ...sent });
        closeOnAbort(sent.abort_signal, () => result.close());
        return result.json<Row>();
      }),
    async *chunks<Row>(name: StatementName, query: string, options?: StatementOptions) {
      const all = withDefaults(options);
      const result = await run(main, name, query, all, async (client, sent) => {
        const begun = await client.query({ query, format: "JSONCompactEachRow", ...sent });
        closeOnAbort(sent.abort_signal, () => begun.close());
        return begun;
      });
      const answer = result.stream<Row>();
      const chunks = (answer as AsyncIterable<readonly { json(): Row }[]>)[Symbol.asyncIterator]();
      try {
        for (;;) {
          const chunk = await inTime(main, all, () => chunks.next());
          if (chunk.done === true) return;
          yield chunk.value.map((row) => row.json());
        }
      } finally {
        answer.destroy();
        result.close();
      }
    },
    stream: async (name, query, options) => {
      const all = withDefaults(options);
      const { stream: answer } = await run(main, name, query, all, async (client, sent) => {
        const begun = await client.exec({ query, ...sent });
        closeOnAbort(sent.abort_signal, () => void begun.stream.destroy());
        return begun;
      });
      // The client destroys answers whose socket is silent for so long.
      (answer as Readable & Partial<IncomingMessage>).socket?.setTimeout(all.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      return answer;
    },
    command: (name, query, options) => commandOn(main, name, query, withDefaults(options)),
    commandEverywhere: async (name, query, options) => {
      const all = withDefaults(options);
      const ran = await Promise.allSettled(shards.map((shard) => commandOn(shard, name, query, all)));
      for (const one of ran) if (one.status === "rejected") throw one.reason;
    },
    insert: async (name, { table, rows }, options) => {
      const all = withDefaults(options);
      const given = { ...all, settings: { async_insert: 0, ...all.settings } } as const;
      await run(main, name, { operation: "INSERT", table }, given, (client, sent) =>
        client.insert({ table, values: rows, format: "JSONEachRow", ...sent }),
      );
    },
    upload: async (name, query, body, options) => {
      await run(main, name, query, withDefaults(options), async (client, sent) => {
        const values = Readable.from([body], { objectMode: false });
        const answer = await client.exec({ query, values, ...sent });
        closeOnAbort(sent.abort_signal, () => void answer.stream.destroy());
        answer.stream.resume();
        await finished(answer.stream);
        return answer;
      });
    },
    ping: () =>
      inTime(main, defaults, async (signal) => {
        const answer = await main.client.ping({ select: true, abort_signal: signal });
        if (!answer.success) throw answer.error;
      }),
    with: (more) => viewOf(main, shards, names, withDefaults(more)),
  };
};

/**
 * `maxConnections`: more statements wait, within their timeout. `address`: for errors.
 * @throws TypeError for an invalid URL
 */
export const createSession = (
  deps: WarehouseAccess & {
    readonly topology?: Topology;
    readonly maxConnections?: number;
    readonly address?: string | undefined;
  },
): OpenSession => {
  const { url, ca, application, settings, topology = { cluster: null } } = deps;
  const { maxConnections = DEFAULT_CONNECTIONS } = deps;
  const main = openServer({ url, ca, application, settings }, maxConnections, deps.address);
  const shards =
    topology.shards === undefined
      ? [main]
      : serverUrls(url, topology).map((shard, index) =>
          openServer({ url: shard, ca, application, settings }, maxConnections, topology.shards?.[index]),
        );
  return {
    ...viewOf(main, shards, clusterNames(topology), {}),
    close: async () => {
      await Promise.all(
        Array.from(new Set([main, ...shards])).flatMap(({ client, fresh }) => [
          client.close(),
          fresh.close(),
        ]),
      );
    },
  };
};
