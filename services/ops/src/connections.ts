import {
  type Admin,
  createAdmin,
  createRangeReader,
  type PartitionLag,
  type RangeReader,
} from "@conversation-export/bus";
import { createJobClient, type JobClient } from "@conversation-export/queue";
import { createLogger, isRetryable, type Logger, retry, ServiceError } from "@conversation-export/runtime";
import { awaitAnswer } from "@conversation-export/warehouse";
import type { BusConfig } from "./config.ts";
import { explainWarehouse, kafkaAway, redisAway } from "./explain.ts";
import { addressOf, whyUnreachable } from "./reachable.ts";

/** How long Kafka may stay away. */
const BUS_TIMEOUT_MS = 10_000;
/** How long ClickHouse may take to say that it is there; what it is then asked may take longer. */
const CLICKHOUSE_TIMEOUT_MS = 7_000;
const REDIS_PORT = 6379;
const LAG_DEADLINE_MS = 5_000;

/** The command says itself what is wrong. */
export const silentLog = (): Logger => createLogger({ service: "ops", level: "silent" });

/** Starts a part that waits for its server as long as it takes, and throws what `late` makes after `timeoutMs`. */
export const startWithin = async (
  part: { start(): Promise<unknown> },
  timeoutMs: number,
  late: () => Error,
): Promise<void> => {
  const tooLate = Promise.withResolvers<never>();
  const timer = setTimeout(() => tooLate.reject(late()), timeoutMs);
  const started = part.start();
  // When it is stopped later, nobody waits for it any more.
  started.catch(() => undefined);
  try {
    await Promise.race([started, tooLate.promise]);
  } finally {
    clearTimeout(timer);
  }
};

const withBus = async <P extends { start(): Promise<unknown>; stop(): Promise<unknown> }, T>(
  part: P,
  brokers: readonly string[],
  timeoutMs: number,
  work: (part: P) => Promise<T>,
): Promise<T> => {
  try {
    await startWithin(part, timeoutMs, () => kafkaAway(brokers));
  } catch (error) {
    // An attempt to connect takes its time to end; nobody needs to wait for it.
    part.stop().catch(() => undefined);
    throw error;
  }
  try {
    return await work(part);
  } finally {
    await part.stop();
  }
};

/** Throws `CommandError` at once when no broker accepts connections. */
const requireBrokers = async (brokers: readonly string[]): Promise<void> => {
  const problem = await whyUnreachable(brokers.map(addressOf));
  if (problem !== null) throw kafkaAway(brokers, problem);
};

/** Throws `CommandError` at once when Redis accepts no connections. */
const requireRedis = async (redisUrl: string): Promise<void> => {
  const { hostname, port } = new URL(redisUrl);
  const problem = await whyUnreachable([addressOf(`${hostname}:${port || REDIS_PORT}`)]);
  if (problem !== null) throw redisAway(redisUrl, problem);
};

/**
 * Connects to Kafka for the work. Throws `CommandError` when it does not answer: at once, or after `waitMs` when that
 * is given.
 */
export const withAdmin = async <T>(
  { brokers }: Pick<BusConfig, "brokers">,
  work: (admin: Admin) => Promise<T>,
  waitMs?: number,
): Promise<T> => {
  if (waitMs === undefined) await requireBrokers(brokers);
  const admin = createAdmin({ brokers, clientId: "export-ops", log: silentLog() });
  return withBus(admin, brokers, waitMs ?? BUS_TIMEOUT_MS, work);
};

/** The same with a reader of given places. */
export const withRangeReader = async <T>(
  { brokers }: Pick<BusConfig, "brokers">,
  work: (reader: RangeReader) => Promise<T>,
): Promise<T> => {
  await requireBrokers(brokers);
  const reader = createRangeReader({ brokers, clientId: "export-ops", log: silentLog() });
  return withBus(reader, brokers, BUS_TIMEOUT_MS, work);
};

/** Connects to the queues for the work. Throws `CommandError` when Redis does not answer. */
export const withJobClient = async <T>(
  redisUrl: string,
  work: (jobs: JobClient) => Promise<T>,
): Promise<T> => {
  await requireRedis(redisUrl);
  const jobs = createJobClient({ url: redisUrl, log: silentLog() });
  try {
    await jobs.start();
    return await work(jobs);
  } catch (error) {
    throw explainRedis(error, redisUrl);
  } finally {
    await jobs.stop();
  }
};

/** Trouble with Redis in words for the terminal. */
export const explainRedis = (error: unknown, redisUrl: string): unknown =>
  error instanceof ServiceError && error.code === "redis_unavailable"
    ? redisAway(redisUrl, error.cause instanceof Error ? error.cause.message : null, error)
    : error;

/** Throws `CommandError` when ClickHouse does not answer, also when it hangs. */
export const requireClickhouse = async (url: string): Promise<void> => {
  try {
    await awaitAnswer({ url, application: "export-ops", timeoutMs: CLICKHOUSE_TIMEOUT_MS });
  } catch (error) {
    throw explainWarehouse(error, url);
  }
};

/** Opens a store of the warehouse for the work. Throws `CommandError` when ClickHouse does not answer or refuses. */
export const withStore = async <S extends { close(): Promise<void> }, T>(
  url: string,
  open: () => S,
  work: (store: S) => Promise<T>,
): Promise<T> => {
  await requireClickhouse(url);
  const store = open();
  try {
    return await work(store);
  } catch (error) {
    throw explainWarehouse(error, url);
  } finally {
    await store.close();
  }
};

/** The lag of ingest. Brokers that were just started do not know yet which of them keeps the commits. */
export const fetchLag = (
  admin: Admin,
  { groupId, topics }: Pick<BusConfig, "groupId" | "topics">,
): Promise<PartitionLag[]> =>
  retry(() => admin.fetchLag(groupId, topics), { deadlineMs: LAG_DEADLINE_MS, retryable: isRetryable });
