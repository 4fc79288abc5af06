import { type Logger, ServiceError } from "@conversation-export/runtime";
import { Redis as Client } from "ioredis";
import { problemsOf, type RedisServerFacts, readServerFacts } from "./server-facts.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 2_000;
const SILENCE_TIMEOUT_MS = 5_000;
const LONG_SILENCE_TIMEOUT_MS = 30_000;
const MAX_RECONNECT_MS = 2_000;

export type Redis = {
  /** Starts connecting and returns at once, for a process that can do without the server. */
  connect(): void;
  /** Waits for the server as long as it takes; rejects after `stop`. Later losses of the connection heal alone. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when the server answers. @throws ServiceError `redis_unavailable` */
  ping(): Promise<void>;
  /**
   * Warns in the log of what loses jobs: a server that evicts keys, or one that is too old.
   * @throws ServiceError `redis_unavailable`
   */
  checkServer(): Promise<RedisServerFacts>;
};

const clients = new WeakMap<Redis, Client>();

/** The connection behind `redis`, for the files of this package. */
export const clientOf = (redis: Redis): Client => {
  const client = clients.get(redis);
  if (client === undefined) throw new TypeError("not made by createRedis");
  return client;
};

/** Runs an operation on Redis. @throws ServiceError `redis_unavailable`, whatever it was that failed */
export const askRedis = async <T>(operation: () => Promise<T>): Promise<T> => {
  try {
    return await operation();
  } catch (error) {
    throw redisUnavailable(error);
  }
};

export const redisUnavailable = (error: unknown): ServiceError =>
  new ServiceError("redis_unavailable", `Redis does not answer: ${String(error)}`, {
    retryable: true,
    cause: error,
  });

const WHEN = {
  /** A command of now is worth nothing later, and must not pile up while the server is away. */
  now: {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
  },
  /** A worker has nothing else to do than to wait, also for an answer that blocks. */
  ever: { maxRetriesPerRequest: null, socketTimeout: LONG_SILENCE_TIMEOUT_MS },
} as const;

/**
 * `url`: `redis://user:password@host:port/database`, or `rediss:` for TLS.
 * @param deps.within whether a command fails when the server is away (`now`, the default) or waits for it (`ever`)
 */
export const createRedis = (deps: {
  readonly url: string;
  readonly log: Logger;
  readonly within?: keyof typeof WHEN;
}): Redis => {
  const { url, log } = deps;
  const client = new Client(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Without its socketTimeout a connection whose other end vanished silently would be kept for many minutes.
    ...WHEN[deps.within ?? "now"],
    retryStrategy: (attempt) => Math.min(attempt * 100, MAX_RECONNECT_MS),
  });
  const abort = new AbortController();
  let reported = false;

  client.on("error", (error: Error) => {
    if (reported) return;
    reported = true;
    log.warn({ error: error.message }, "Redis is away, connecting again");
  });
  client.on("ready", () => {
    reported = false;
    log.info("connected to Redis");
  });

  // The client says what is wrong by its event and tries again by itself.
  const connect = (): void => void client.connect().catch(() => undefined);

  const redis: Redis = {
    connect,
    start: () =>
      new Promise((resolve, reject) => {
        abort.signal.addEventListener("abort", () => reject(abort.signal.reason as Error), { once: true });
        client.once("ready", resolve);
        connect();
      }),
    stop: () => {
      abort.abort(new ServiceError("stopped", "stopped while waiting for Redis"));
      client.disconnect();
      return Promise.resolve();
    },
    ping: () => askRedis(async () => void (await client.ping())),
    checkServer: () =>
      askRedis(async () => {
        const facts = readServerFacts(await client.info());
        for (const problem of problemsOf(facts)) log.warn(facts, problem);
        return facts;
      }),
  };
  clients.set(redis, client);
  return redis;
};
