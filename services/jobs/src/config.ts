import {
  type ClickhouseCluster,
  type ClickhouseServer,
  ConfigError,
  type Environment,
  type KafkaServers,
  LOG_LEVELS,
  parseEnv,
  readAll,
  readClickhouseCluster,
  readClickhouseServer,
  readKafkaServers,
  readRedisServer,
  readTraceSettings,
  type RedisServer,
  type TraceSettings,
} from "@conversation-export/runtime";
import { z } from "zod";

const count = (fallback: number, min = 1) => z.coerce.number().int().min(min).default(fallback);

/** In seconds; 0 switches a schedule off. */
const interval = (fallbackSeconds: number) => count(fallbackSeconds, 0);

const schema = z.object({
  KAFKA_GROUP_ID: z.string().min(1).default("conversation-export-ingest"),
  TOPIC_CONVERSATIONS: z.string().min(1).default("conversations"),
  TOPIC_MESSAGES: z.string().min(1).default("messages"),
  TOPIC_END_USERS: z.string().min(1).default("end-users"),
  MAX_TIME_AHEAD_SECONDS: count(300, 0),
  LANDING_DAYS: count(14).pipe(z.number().max(3_650)),
  BACKFILL_PART_EVENTS: count(20_000),
  AWS_ENDPOINT_URL_S3: z.url({ protocol: /^https?$/ }).optional(),
  AWS_REGION: z.string().min(1).optional(),
  SUPPRESSION_SECRET: z.string().min(32, "must have at least 32 characters"),
  WRITER_LEASE_MS: count(30_000, 1_000),
  ERASURE_DEADLINE_HOURS: count(72),
  JOB_LOCK_MS: count(30_000, 2_000),
  UPLOAD_WINDOW_SECONDS: count(3_600).pipe(z.number().max(86_400)),
  UPLOAD_WINDOW_GRACE_SECONDS: count(120, 0),
  COMPACT_QUIET_SECONDS: count(600),
  WINDOWS_INTERVAL_SECONDS: interval(60),
  COMPACT_INTERVAL_SECONDS: interval(600),
  ERASURE_INTERVAL_SECONDS: interval(300),
  RETENTION_INTERVAL_SECONDS: interval(86_400),
  RECONCILE_INTERVAL_SECONDS: interval(3_600),
  BOARD_USER: z.string().min(1).default("operator"),
  BOARD_PASSWORD: z.string().min(12, "must have at least 12 characters").optional(),
  HOST: z.string().default("0.0.0.0"),
  METRICS_PORT: count(9090, 0).pipe(z.number().max(65_535)),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
  SHUTDOWN_DEADLINE_MS: count(30_000, 1_000),
});

export type Config = {
  readonly redis: RedisServer;
  /** With the user for jobs. */
  readonly clickhouse: ClickhouseServer;
  readonly topology: ClickhouseCluster;
  readonly kafka: KafkaServers;
  /** The group of ingest. */
  readonly groupId: string;
  readonly topics: { readonly conversations: string; readonly messages: string; readonly endUsers: string };
  /** How much later than its arrival on the bus an event may claim to be; as for ingest. */
  readonly maxTimeAheadMs: number;
  /** How long the landing rows of a backfill from the bus or from files are kept; as for ingest. */
  readonly landingDays: number;
  /** Events of the landing table in one part of a backfill. */
  readonly backfillPartEvents: number;
  /** Where files of `s3://` addresses are; null: where the region says. */
  readonly s3: { readonly endpoint: string | null; readonly region: string | null };
  readonly suppressionSecret: string;
  /** For how long a process may write without having renewed its lease. */
  readonly writerLeaseMs: number;
  /** A request for erasure that is older is overdue. */
  readonly erasureDeadlineMs: number;
  /** After so long without a sign of its worker a job is given to another. */
  readonly lockMs: number;
  readonly uploadWindow: {
    readonly seconds: number;
    /** How long after its end a window stays open. */
    readonly graceSeconds: number;
  };
  /** How far back the INSERTs count that keep a partition from being merged. */
  readonly quietSeconds: number;
  /** null: not by the clock. */
  readonly everyMs: {
    readonly windows: number | null;
    readonly compact: number | null;
    readonly erasure: number | null;
    readonly retention: number | null;
    readonly reconcile: number | null;
  };
  /** null: no board. */
  readonly board: { readonly user: string; readonly password: string } | null;
  readonly host: string;
  /** 0 takes a free port. */
  readonly metricsPort: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** null: there are none. */
  readonly traces: TraceSettings | null;
  readonly shutdownDeadlineMs: number;
};

/** Reads the configuration. Throws `ConfigError`, which names every wrong variable. */
export const readConfig = (env: Environment = process.env): Config => {
  const [redis, clickhouse, topology, kafka, traces, values] = readAll(
    () => readRedisServer(env),
    () => readClickhouseServer(env),
    () => readClickhouseCluster(env),
    () => readKafkaServers(env),
    () => readTraceSettings(env, "conversation-export-jobs"),
    () => parseEnv(schema, env),
  );
  const topics = [values.TOPIC_CONVERSATIONS, values.TOPIC_MESSAGES, values.TOPIC_END_USERS];
  if (new Set(topics).size < topics.length) {
    throw new ConfigError(["TOPIC_CONVERSATIONS, TOPIC_MESSAGES, TOPIC_END_USERS: must be three topics"]);
  }
  return {
    redis,
    clickhouse,
    topology,
    kafka,
    groupId: values.KAFKA_GROUP_ID,
    topics: {
      conversations: values.TOPIC_CONVERSATIONS,
      messages: values.TOPIC_MESSAGES,
      endUsers: values.TOPIC_END_USERS,
    },
    maxTimeAheadMs: values.MAX_TIME_AHEAD_SECONDS * 1000,
    landingDays: values.LANDING_DAYS,
    backfillPartEvents: values.BACKFILL_PART_EVENTS,
    s3: { endpoint: values.AWS_ENDPOINT_URL_S3 ?? null, region: values.AWS_REGION ?? null },
    suppressionSecret: values.SUPPRESSION_SECRET,
    writerLeaseMs: values.WRITER_LEASE_MS,
    erasureDeadlineMs: values.ERASURE_DEADLINE_HOURS * 3_600_000,
    lockMs: values.JOB_LOCK_MS,
    uploadWindow: {
      seconds: values.UPLOAD_WINDOW_SECONDS,
      graceSeconds: values.UPLOAD_WINDOW_GRACE_SECONDS,
    },
    quietSeconds: values.COMPACT_QUIET_SECONDS,
    everyMs: {
      windows: everyMs(values.WINDOWS_INTERVAL_SECONDS),
      compact: everyMs(values.COMPACT_INTERVAL_SECONDS),
      erasure: everyMs(values.ERASURE_INTERVAL_SECONDS),
      retention: everyMs(values.RETENTION_INTERVAL_SECONDS),
      reconcile: everyMs(values.RECONCILE_INTERVAL_SECONDS),
    },
    board:
      values.BOARD_PASSWORD === undefined
        ? null
        : { user: values.BOARD_USER, password: values.BOARD_PASSWORD },
    host: values.HOST,
    metricsPort: values.METRICS_PORT,
    logLevel: values.LOG_LEVEL,
    traces,
    shutdownDeadlineMs: values.SHUTDOWN_DEADLINE_MS,
  };
};

const everyMs = (seconds: number): number | null => (seconds === 0 ? null : seconds * 1000);
