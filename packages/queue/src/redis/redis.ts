import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import { type Logger, parseRedisUrl, type RedisServer, ServiceError } from "@conversation-export/runtime";
// Before ioredis, whose class it replaces.
import "./verbatim-string.ts";
import { Redis as Client, type RedisOptions } from "ioredis";
import { isInClusterMode, problemsOf, type RedisServerFacts, readServerFacts } from "./server-facts.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 2_000;
const SILENCE_TIMEOUT_MS = 5_000;
/** Longer than BullMQ blocks, which is 10 s at most. */
const LONG_SILENCE_TIMEOUT_MS = 15_000;
const MAX_RECONNECT_MS = 2_000;
const ID_KEY = "conversation-export:id";

/** `problems`: settings by which jobs are lost. */
export type ServerCheck = RedisServerFacts & { readonly problems: readonly string[] };

export type Redis = {
  /** For a process that can do without the server. */
  connect(): void;
  /** Rejects after `stop` and with `redis_cluster`. */
  start(): Promise<void>;
  suits(): Promise<void>;
  reasonOf(error: Error): string;
  stop(): Promise<void>;
  /** A server may answer reads and take no writes. */
  tryWrite(): Promise<void>;
  /** Processes with another id use another Redis. */
  ownId(): Promise<string>;
  checkServer(): Promise<ServerCheck>;
};

const clients = new WeakMap<Redis, Client>();

export const clientOf = (redis: Redis): Client => {
  const client = clients.get(redis);
  if (client === undefined) throw new TypeError("not made by createRedis");
  return client;
};

export const askRedis = async <T>(operation: () => Promise<T>): Promise<T> => {
  try {
    return await operation();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    // A refusal, such as of a full server, is quoted in its own words.
    const trouble =
      error instanceof Error && error.name === "ReplyError"
        ? `refuses: ${error.message}`
        : `does not answer: ${String(error)}`;
    throw new ServiceError("redis_unavailable", `Redis ${trouble}`, { retryable: true, cause: error });
  }
};

const inClusterMode = (): ServiceError =>
  new ServiceError(
    "redis_cluster",
    "Redis runs in cluster mode (cluster_enabled:1), in which scripts on several keys fail: name a server in REDIS_URL that has cluster mode off, with replicas behind sentinels or a managed address",
  );

const WHEN = {
  /** Later they would be outdated, and they must not pile up. */
  now: {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
  },
  /** For workers, whose commands may block. */
  ever: { maxRetriesPerRequest: null, socketTimeout: LONG_SILENCE_TIMEOUT_MS },
} as const;

const openClient = (
  { url, ca, sentinelPassword }: RedisServer,
  options: Omit<RedisOptions, "protocol" | "replyMapping">,
): Client => {
  const address = parseRedisUrl(url);
  const [server] = address?.hosts ?? [];
  if (address === undefined || server === undefined) throw new TypeError("not an address of Redis");
  const { hosts, name, username, password, database: db } = address;
  const tls = address.tls ? { ...(ca !== undefined && { ca }) } : undefined;
  const common = {
    ...options,
    db,
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
  };
  if (name === null) {
    // Proxies route by the TLS server name, which ioredis does not send by itself.
    const named = isIP(server.host) === 0 && { servername: server.host };
    return new Client({ ...common, ...server, ...(tls !== undefined && { tls: { ...tls, ...named } }) });
  }
  return new Client({
    ...common,
    sentinels: [...hosts],
    name,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls !== undefined && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    sentinelRetryStrategy: reconnectMs,
  });
};

const reconnectMs = (attempt: number): number => Math.min(attempt * 100, MAX_RECONNECT_MS);

/** No longer the primary; also from within a script. */
const isDemoted = (error: Error): boolean => error.message.includes("READONLY ");

/** ioredis reports a name that sentinels do not know as if they were away. */
const monitorSentinels = (client: Client, name: string) => {
  let isUnknown = false;
  client.on("sentinelError", (error: Error) => {
    isUnknown ||= /invalid reply: null$|No such master with that name/.test(error.message);
  });
  client.on("ready", () => {
    isUnknown = false;
  });
  return {
    reasonOf: ({ message }: Error): string =>
      isUnknown && message.startsWith("All sentinels are unreachable")
        ? `no sentinel that answers knows a server named "${name}"`
        : message,
  };
};

const askMode = async (client: Client, log: Logger): Promise<void> => {
  try {
    const mode = isInClusterMode(await client.info("cluster"));
    if (mode === true) throw inClusterMode();
    if (mode === false) return;
  } catch (error) {
    if (error instanceof ServiceError || !(error instanceof Error)) throw error;
    if (error.message === "Command timed out") return askMode(client, log);
    if (error.name !== "ReplyError") return;
  }
  log.warn("checking Redis for cluster mode failed, it hides the setting");
};

/** `onRefused`: in cluster mode, also a server that takes over after `start`. */
export const createRedis = (
  deps: RedisServer & {
    readonly log: Logger;
    readonly within?: keyof typeof WHEN;
    readonly onRefused?: (error: unknown) => void;
  },
): Redis => {
  const { log } = deps;
  const client = openClient(deps, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Without `socketTimeout` a silently dead connection is kept for many minutes.
    ...WHEN[deps.within ?? "now"],
    retryStrategy: reconnectMs,
    reconnectOnError: isDemoted,
  });
  const abort = new AbortController();
  const sentinels = monitorSentinels(client, parseRedisUrl(deps.url)?.name ?? "");
  let reported = false;
  let suited = Promise.resolve();

  client.on("error", (error: Error) => {
    if (reported) return;
    reported = true;
    log.warn({ error: sentinels.reasonOf(error) }, "Redis is away, connecting again");
  });
  client.on("ready", () => {
    reported = false;
    log.info("connected to Redis");
    suited = askMode(client, log);
    suited.catch((error: unknown) => deps.onRefused?.(error));
  });

  // Errors come by event, and the client reconnects by itself.
  const connect = (): void => void client.connect().catch(() => undefined);

  const redis: Redis = {
    connect,
    start: () =>
      new Promise((resolve, reject) => {
        abort.signal.addEventListener("abort", () => reject(abort.signal.reason as Error), { once: true });
        client.once("ready", () => void suited.then(resolve, reject));
        connect();
      }),
    stop: () => {
      abort.abort(new ServiceError("stopped", "stopped while waiting for Redis"));
      client.disconnect();
      return Promise.resolve();
    },
    suits: () => suited,
    reasonOf: sentinels.reasonOf,
    ownId: () =>
      askRedis(async () => {
        await client.set(ID_KEY, randomUUID(), "NX");
        return (await client.get(ID_KEY)) ?? "";
      }),
    tryWrite: () =>
      askRedis(async () => void (await client.set("conversation-export:write-check", "1", "PX", 1_000))),
    checkServer: () =>
      askRedis(async () => {
        const facts = readServerFacts(await client.info());
        return { ...facts, problems: problemsOf(facts) };
      }),
  };
  clients.set(redis, client);
  return redis;
};
