import {
  type Admin,
  createAdmin,
  createRangeReader,
  type PartitionLag,
  type RangeReader,
} from "@conversation-export/bus";
import { createJobClient, type JobClient } from "@conversation-export/queue";
import {
  type ClickhouseServer,
  createLogger,
  isRetryable,
  type KafkaServers,
  type Logger,
  parseRedisUrl,
  type RedisServer,
  retry,
  ServiceError,
  tlsTroubleOf,
} from "@conversation-export/runtime";
import { awaitAnswer } from "@conversation-export/warehouse";
import type { BusConfig } from "./config.ts";
import {
  CommandError,
  explainBus,
  explainWarehouse,
  mayWantTls,
  kafkaAway,
  redisAway,
  redisPlace,
} from "./explain.ts";
import { CLICKHOUSE_TLS, explainTlsOnly, KAFKA_TLS, REDIS_TLS } from "./explain-tls.ts";
import { addressOf, speakTls, whyUnreachable } from "./reachable.ts";

/** How long Kafka may stay away. */
const BUS_TIMEOUT_MS = 10_000;
/** How long ClickHouse may take to say that it is there; what it is then asked may take longer. */
const CLICKHOUSE_TIMEOUT_MS = 7_000;
const HTTP_PORT = 80;
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

type BusPart = { start(): Promise<unknown>; stop(): Promise<unknown> };

/** What kept a client of Kafka from starting, in words for the terminal. */
const explainStart = async (error: unknown, servers: KafkaServers): Promise<unknown> => {
  if (error instanceof CommandError && servers.ssl === undefined) {
    const { brokers } = servers;
    if (await speakTls(brokers.map(addressOf))) {
      return new CommandError(explainTlsOnly(KAFKA_TLS, brokers.join(", ")), { cause: error });
    }
  }
  return explainBus(error, servers);
};

const withBus = async <P extends BusPart, T>(
  part: P,
  servers: KafkaServers,
  timeoutMs: number,
  work: (part: P) => Promise<T>,
): Promise<T> => {
  try {
    await startWithin(part, timeoutMs, () => kafkaAway(servers));
  } catch (error) {
    // An attempt to connect takes its time to end; nobody needs to wait for it.
    part.stop().catch(() => undefined);
    throw await explainStart(error, servers);
  }
  try {
    return await work(part);
  } catch (error) {
    throw explainBus(error, servers);
  } finally {
    await part.stop();
  }
};

/** Throws `CommandError` at once when no broker accepts connections; with `patient` only for what does not pass. */
const requireBrokers = async (servers: KafkaServers, patient = false): Promise<void> => {
  const problem = await whyUnreachable(servers.brokers.map(addressOf), servers.ssl);
  if (problem === null || (patient && tlsTroubleOf(problem) === undefined)) return;
  throw kafkaAway(servers, problem);
};

const connectionOf = ({ brokers, ssl, sasl }: KafkaServers) => ({
  brokers,
  ...(ssl !== undefined && { ssl }),
  ...(sasl !== undefined && { sasl }),
  clientId: "export-ops",
  log: silentLog(),
});

/**
 * Connects to Kafka for the work. Throws `CommandError` when it does not answer: at once, or after `waitMs` when that
 * is given.
 */
export const withAdmin = async <T>(
  servers: KafkaServers,
  work: (admin: Admin) => Promise<T>,
  waitMs?: number,
): Promise<T> => {
  await requireBrokers(servers, waitMs !== undefined);
  return withBus(createAdmin(connectionOf(servers)), servers, waitMs ?? BUS_TIMEOUT_MS, work);
};

/** The same with a reader of given places. */
export const withRangeReader = async <T>(
  servers: KafkaServers,
  work: (reader: RangeReader) => Promise<T>,
): Promise<T> => {
  await requireBrokers(servers);
  return withBus(createRangeReader(connectionOf(servers)), servers, BUS_TIMEOUT_MS, work);
};

const redisHosts = ({ url }: RedisServer) => parseRedisUrl(url)?.hosts ?? [];

/** Throws `CommandError` at once when Redis accepts no connections. */
const requireRedis = async (server: RedisServer): Promise<void> => {
  const tls = parseRedisUrl(server.url)?.tls === true;
  const trusted = server.ca === undefined ? {} : { ca: server.ca };
  const problem = await whyUnreachable(redisHosts(server), tls ? trusted : undefined);
  if (problem !== null) throw redisAway(server, problem);
};

/** Connects to the queues for the work. Throws `CommandError` when Redis does not answer. */
export const withJobClient = async <T>(
  server: RedisServer,
  work: (jobs: JobClient) => Promise<T>,
): Promise<T> => {
  await requireRedis(server);
  const jobs = createJobClient({ ...server, log: silentLog() });
  try {
    await jobs.start();
    return await work(jobs);
  } catch (error) {
    throw await explainRedis(error, server);
  } finally {
    await jobs.stop();
  }
};

/** Trouble with Redis in words for the terminal. */
const explainRedis = async (error: unknown, server: RedisServer): Promise<unknown> => {
  if (!(error instanceof ServiceError) || error.code !== "redis_unavailable") return error;
  if (parseRedisUrl(server.url)?.tls === false && (await speakTls(redisHosts(server)))) {
    return new CommandError(explainTlsOnly(REDIS_TLS, redisPlace(server)), { cause: error });
  }
  return redisAway(server, error.cause instanceof Error ? error.cause.message : null, error);
};

/** Trouble with ClickHouse in words for the terminal; `variable`: where its address stands. */
export const explainStore = async (
  error: unknown,
  server: ClickhouseServer,
  variable?: string,
): Promise<unknown> => {
  const { protocol, hostname, port, host } = new URL(server.url);
  if (mayWantTls(error) && protocol === "http:") {
    const address = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || HTTP_PORT) };
    if (await speakTls([address])) {
      return new CommandError(explainTlsOnly(CLICKHOUSE_TLS, host), { cause: error });
    }
  }
  return explainWarehouse(error, server, variable);
};

/** Throws `CommandError` when ClickHouse does not answer, also when it hangs. */
export const requireClickhouse = async (server: ClickhouseServer): Promise<void> => {
  try {
    await awaitAnswer({ ...server, application: "export-ops", timeoutMs: CLICKHOUSE_TIMEOUT_MS });
  } catch (error) {
    throw await explainStore(error, server);
  }
};

/** Opens a store of the warehouse for the work. Throws `CommandError` when ClickHouse does not answer or refuses. */
export const withStore = async <S extends { close(): Promise<void> }, T>(
  server: ClickhouseServer,
  open: () => S,
  work: (store: S) => Promise<T>,
): Promise<T> => {
  await requireClickhouse(server);
  const store = open();
  try {
    return await work(store);
  } catch (error) {
    throw await explainStore(error, server);
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
