import type { Admin, PartitionLag, RangeReader } from "@conversation-export/bus";
import type { JobClient, Redis } from "@conversation-export/queue";
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
  within,
} from "@conversation-export/runtime";
import { awaitAnswer, createSession, type Session } from "@conversation-export/warehouse";
import type { BusConfig, WarehouseConfig } from "../config.ts";
import {
  CommandError,
  explainBus,
  explainWarehouse,
  mayWantTls,
  kafkaAway,
  redisAway,
  redisInClusterMode,
  redisPlace,
} from "../explain/explain.ts";
import { CLICKHOUSE_TLS, explainTlsOnly, KAFKA_TLS, REDIS_TLS } from "../explain/explain-tls.ts";
import { addressOf, speakTls, whyUnreachable } from "./reachable.ts";

const BUS_TIMEOUT_MS = 10_000;
/** Of a ping only. */
const CLICKHOUSE_TIMEOUT_MS = 7_000;
const REDIS_TIMEOUT_MS = 5_000;
const HTTP_PORT = 80;
const LAG_DEADLINE_MS = 5_000;

// Each takes a third of a second to load.
const loadBus = () => import("@conversation-export/bus");
const loadQueue = () => import("@conversation-export/queue");

const silentLog = (): Logger => createLogger({ service: "ops", level: "silent" });

type BusPart = { start(): Promise<unknown>; stop(): Promise<unknown> };

const explainStart = async (error: unknown, servers: KafkaServers): Promise<unknown> => {
  if (error instanceof CommandError && servers.ssl === undefined) {
    const { brokers } = servers;
    if (await speakTls(brokers.map(addressOf))) {
      return new CommandError(explainTlsOnly(KAFKA_TLS, brokers.join(", ")), { cause: error });
    }
  }
  return explainBus(error, servers);
};

const startPart = async <P extends BusPart>(
  part: P,
  servers: KafkaServers,
  timeoutMs = BUS_TIMEOUT_MS,
): Promise<P> => {
  try {
    await within(part.start(), timeoutMs, () => {
      throw kafkaAway(servers);
    });
    return part;
  } catch (error) {
    // Not awaited, since it takes a while.
    part.stop().catch(() => undefined);
    throw await explainStart(error, servers);
  }
};

const useBus = async <P extends BusPart, T>(
  part: P,
  servers: KafkaServers,
  work: (part: P) => Promise<T>,
): Promise<T> => {
  try {
    return await work(part);
  } catch (error) {
    throw explainBus(error, servers);
  } finally {
    await part.stop();
  }
};

/** With `patient`, servers may be away. @throws CommandError */
const requireBrokers = async (servers: KafkaServers, patient = false): Promise<void> => {
  const problem = await whyUnreachable(servers.brokers.map(addressOf), servers.ssl);
  if (problem !== null && !(patient && tlsTroubleOf(problem) === undefined)) {
    throw kafkaAway(servers, problem);
  }
  try {
    const { requireToken } = await loadBus();
    await requireToken(servers);
  } catch (error) {
    if (!(patient && isRetryable(error))) throw explainBus(error, servers);
  }
};

const connectionOf = ({ brokers, ssl, sasl }: KafkaServers) => ({
  brokers,
  ...(ssl !== undefined && { ssl }),
  ...(sasl !== undefined && { sasl }),
  clientId: "export-ops",
  log: silentLog(),
});

/** @throws CommandError at once, or after `waitMs` */
export const openAdmin = async (servers: KafkaServers, waitMs?: number): Promise<Admin> => {
  await requireBrokers(servers, waitMs !== undefined);
  const { createAdmin } = await loadBus();
  return startPart(createAdmin(connectionOf(servers)), servers, waitMs);
};

export const withAdmin = async <T>(
  servers: KafkaServers,
  work: (admin: Admin) => Promise<T>,
  waitMs?: number,
): Promise<T> => useBus(await openAdmin(servers, waitMs), servers, work);

export const withRangeReader = async <T>(
  servers: KafkaServers,
  work: (reader: RangeReader) => Promise<T>,
): Promise<T> => {
  await requireBrokers(servers);
  const { createRangeReader } = await loadBus();
  return useBus(await startPart(createRangeReader(connectionOf(servers)), servers), servers, work);
};

const redisHosts = ({ url }: RedisServer) => parseRedisUrl(url)?.hosts ?? [];

const requireRedis = async (server: RedisServer): Promise<void> => {
  const tls = parseRedisUrl(server.url)?.tls === true;
  const trusted = server.ca === undefined ? {} : { ca: server.ca };
  const problem = await whyUnreachable(redisHosts(server), tls ? trusted : undefined);
  if (problem !== null) throw redisAway(server, problem);
};

export const openJobClient = async (server: RedisServer): Promise<JobClient> => {
  await requireRedis(server);
  const { createJobClient } = await loadQueue();
  const jobs = createJobClient({ ...server, log: silentLog() });
  await jobs.start();
  return jobs;
};

export const withJobClient = async <T>(
  server: RedisServer,
  work: (jobs: JobClient) => Promise<T>,
): Promise<T> => {
  const jobs = await openJobClient(server);
  try {
    return await work(jobs);
  } catch (error) {
    throw await explainRedis(error, server);
  } finally {
    await jobs.stop();
  }
};

export const withRedis = async <T>(server: RedisServer, work: (redis: Redis) => Promise<T>): Promise<T> => {
  await requireRedis(server);
  const { createRedis } = await loadQueue();
  const redis = createRedis({ ...server, log: silentLog() });
  try {
    await within(redis.start(), REDIS_TIMEOUT_MS, () => {
      throw redisAway(server);
    });
    return await work(redis);
  } catch (error) {
    throw await explainRedis(error, server);
  } finally {
    await redis.stop();
  }
};

export const explainRedis = async (error: unknown, server: RedisServer): Promise<unknown> => {
  if (!(error instanceof ServiceError)) return error;
  if (error.code === "redis_cluster") return redisInClusterMode(server, error);
  if (error.code !== "redis_unavailable") return error;
  if (parseRedisUrl(server.url)?.tls === false && (await speakTls(redisHosts(server)))) {
    return new CommandError(explainTlsOnly(REDIS_TLS, redisPlace(server)), { cause: error });
  }
  return redisAway(server, error.cause instanceof Error ? error.cause.message : null, error);
};

/** `variable` holds the address. */
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

export const requireClickhouse = async (server: ClickhouseServer): Promise<void> => {
  try {
    await awaitAnswer({ ...server, application: "export-ops", timeoutMs: CLICKHOUSE_TIMEOUT_MS });
  } catch (error) {
    throw await explainStore(error, server);
  }
};

export const withWarehouse = async <T>(
  server: WarehouseConfig,
  work: (session: Session) => Promise<T>,
): Promise<T> => {
  await requireClickhouse(server);
  const session = createSession({ ...server, application: "export-ops", topology: server });
  try {
    return await work(session);
  } catch (error) {
    throw await explainStore(error, server);
  } finally {
    await session.close();
  }
};

/** Freshly started brokers do not know the group coordinator. */
export const fetchLag = (
  admin: Admin,
  { groupId, topics }: Pick<BusConfig, "groupId" | "topics">,
): Promise<PartitionLag[]> =>
  retry(() => admin.fetchLag(groupId, topics), { deadlineMs: LAG_DEADLINE_MS, retryable: isRetryable });
