import {
  type ClickhouseServer,
  ConfigError,
  type Environment,
  type KafkaServers,
  LOG_LEVELS,
  parseEnv,
  readAll,
  readClickhouseServer,
  readKafkaServers,
  readRedisServer,
  readTraceSettings,
  type RedisServer,
  type TraceSettings,
} from "@conversation-export/runtime";
import { z } from "zod";

const count = (fallback: number, min = 1) => z.coerce.number().int().min(min).default(fallback);

const TOPIC_NAMES = ["TOPIC_CONVERSATIONS", "TOPIC_MESSAGES", "TOPIC_END_USERS"] as const;

const schema = z.object({
  HOST: z.string().default("0.0.0.0"),
  METRICS_PORT: count(9090, 0).pipe(z.number().max(65_535)),
  KAFKA_GROUP_ID: z.string().min(1).default("conversation-export-ingest"),
  KAFKA_SESSION_TIMEOUT_MS: count(30_000, 1_000),
  TOPIC_CONVERSATIONS: z.string().min(1).default("conversations"),
  TOPIC_MESSAGES: z.string().min(1).default("messages"),
  TOPIC_END_USERS: z.string().min(1).default("end-users"),
  SUPPRESSION_SECRET: z.string().min(32, "must have at least 32 characters"),
  WRITER_LEASE_MS: count(30_000, 1_000),
  LANDING: z.enum(["on", "off"]).default("on"),
  LANDING_DAYS: count(14).pipe(z.number().max(3_650)),
  BATCH_MAX_RECORDS: count(10_000),
  BATCH_MAX_BYTES: count(64 * 1024 * 1024, 1024),
  BATCH_MAX_AGE_MS: count(500, 10),
  MAX_TIME_AHEAD_SECONDS: count(300, 0),
  BUFFER_MAX_BYTES: count(256 * 1024 * 1024, 1024),
  LAG_INTERVAL_MS: count(5_000, 100),
  WATERMARK_INTERVAL_MS: count(2_000, 100),
  SHUTDOWN_DEADLINE_MS: count(30_000, 1_000),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
});

export type Config = {
  readonly host: string;
  /** 0 takes a free port. */
  readonly metricsPort: number;
  readonly kafka: KafkaServers;
  readonly groupId: string;
  readonly sessionTimeoutMs: number;
  readonly topics: { readonly conversations: string; readonly messages: string; readonly endUsers: string };
  readonly clickhouse: ClickhouseServer;
  readonly redis: RedisServer;
  readonly suppressionSecret: string;
  /** For how long this process may write without having renewed its lease. */
  readonly writerLeaseMs: number;
  /** For how many days events are kept as they came; null: they are not. */
  readonly landingDays: number | null;
  readonly limits: {
    readonly maxRecords: number;
    readonly maxBytes: number;
    readonly maxAgeMs: number;
    readonly maxTimeAheadMs: number;
  };
  /** Bytes of all batches together above which partitions pause. */
  readonly bufferMaxBytes: number;
  readonly lagIntervalMs: number;
  readonly watermarkIntervalMs: number;
  readonly shutdownDeadlineMs: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** null: there are none. */
  readonly traces: TraceSettings | null;
};

/** Reads the configuration. Throws `ConfigError`, which names every wrong variable. */
export const readConfig = (env: Environment = process.env): Config => {
  const [kafka, clickhouse, redis, traces, values] = readAll(
    () => readKafkaServers(env),
    () => readClickhouseServer(env),
    () => readRedisServer(env),
    () => readTraceSettings(env, "conversation-export-ingest"),
    () => parseEnv(schema, env),
  );
  const repeated = TOPIC_NAMES.filter((name, index) =>
    TOPIC_NAMES.slice(0, index).some((other) => values[other] === values[name]),
  );
  if (repeated.length > 0)
    throw new ConfigError(repeated.map((name) => `${name}: must be a topic of its own`));
  return {
    host: values.HOST,
    metricsPort: values.METRICS_PORT,
    kafka,
    groupId: values.KAFKA_GROUP_ID,
    sessionTimeoutMs: values.KAFKA_SESSION_TIMEOUT_MS,
    topics: {
      conversations: values.TOPIC_CONVERSATIONS,
      messages: values.TOPIC_MESSAGES,
      endUsers: values.TOPIC_END_USERS,
    },
    clickhouse,
    redis,
    suppressionSecret: values.SUPPRESSION_SECRET,
    writerLeaseMs: values.WRITER_LEASE_MS,
    landingDays: values.LANDING === "on" ? values.LANDING_DAYS : null,
    limits: {
      maxRecords: values.BATCH_MAX_RECORDS,
      maxBytes: values.BATCH_MAX_BYTES,
      maxAgeMs: values.BATCH_MAX_AGE_MS,
      maxTimeAheadMs: values.MAX_TIME_AHEAD_SECONDS * 1000,
    },
    bufferMaxBytes: values.BUFFER_MAX_BYTES,
    lagIntervalMs: values.LAG_INTERVAL_MS,
    watermarkIntervalMs: values.WATERMARK_INTERVAL_MS,
    shutdownDeadlineMs: values.SHUTDOWN_DEADLINE_MS,
    logLevel: values.LOG_LEVEL,
    traces,
  };
};
