import { parseEnv } from "@conversation-export/runtime";
import { z } from "zod";

type Environment = Readonly<Record<string, string | undefined>>;

const clusterName = z.string().regex(/^[\w-]+$/, "must be a name of letters, digits, _ and -");
const topicName = z
  .string()
  .regex(/^[\w.-]{1,200}$/, "must be a topic name of up to 200 letters, digits, '.', '_' and '-'");
const clickhouseUrl = z.url({
  protocol: /^https?$/,
  error: "must be http://user:password@host:port/database",
});
const secret = z.string().min(32, "must have at least 32 characters");

const warehouseSchema = z.object({
  CLICKHOUSE_URL: clickhouseUrl,
  CLUSTER: clusterName.optional(),
});

const busSchema = z.object({
  KAFKA_BROKERS: z
    .string()
    .transform((list) => list.split(",").map((broker) => broker.trim()))
    .pipe(z.array(z.string().regex(/^.+:\d+$/, "must be host:port,host:port,…")).min(1)),
  KAFKA_GROUP_ID: z.string().min(1).default("conversation-export-ingest"),
  TOPIC_CONVERSATIONS: topicName.default("conversations"),
  TOPIC_MESSAGES: topicName.default("messages"),
  TOPIC_END_USERS: topicName.default("end-users"),
  TOPIC_SMS_TRIGGERS: topicName.default("sms-triggers"),
});

const queueSchema = z.object({
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: "must be redis://user:password@host:port" }),
});

const requestSchema = z.object({
  // That of export-api.
  CURSOR_SECRET: secret,
});
const suppressionSchema = z.object({
  // That of ingest and jobs.
  SUPPRESSION_SECRET: secret,
});

const servicesSchema = z.object({
  LANDING: z.enum(["on", "off"]).default("on"),
  LANDING_DAYS: z.coerce.number().int().min(1).default(14),
  UPLOAD_WINDOW_SECONDS: z.coerce.number().int().min(1).max(86_400).default(3_600),
  ERASURE_DEADLINE_HOURS: z.coerce.number().int().min(1).default(72),
});

const usersSchema = z.object({
  CLICKHOUSE_WRITER_URL: clickhouseUrl.optional(),
  CLICKHOUSE_READER_URL: clickhouseUrl.optional(),
  CLICKHOUSE_INTAKE_URL: clickhouseUrl.optional(),
  CLICKHOUSE_JOBS_URL: clickhouseUrl.optional(),
});

export type WarehouseConfig = {
  /** `http://user:password@host:port/database` of the user for migrations */
  readonly url: string;
  /** null: a single server. */
  readonly cluster: string | null;
};

export type BusConfig = {
  readonly brokers: readonly string[];
  /** The consumer group of ingest. */
  readonly groupId: string;
  /** The topics of the events, without those of the dead letters. */
  readonly topics: readonly string[];
  /** The topic of what export-api asks the platform to do. */
  readonly smsTopic: string;
};

export type QueueConfig = { readonly redisUrl: string };

/** Settings of the services, which have to be as the services have them. */
export type ServiceSettings = {
  readonly landing: boolean;
  readonly landingDays: number;
  /** The length of an upload window. */
  readonly windowSeconds: number;
  readonly erasureDeadlineHours: number;
};

/** The users of the services, each as a URL; null: not given, so not looked at. */
export type ServiceUsers = {
  readonly writer: string | null;
  readonly reader: string | null;
  readonly intake: string | null;
  readonly jobs: string | null;
};

/** Reads where ClickHouse is. Throws `ConfigError`, which names every wrong variable. */
export const readWarehouseConfig = (env: Environment = process.env): WarehouseConfig => {
  const values = parseEnv(warehouseSchema, env);
  return { url: values.CLICKHOUSE_URL, cluster: values.CLUSTER ?? null };
};

/** Reads where Kafka is and how its topics are called. Throws `ConfigError`. */
export const readBusConfig = (env: Environment = process.env): BusConfig => {
  const values = parseEnv(busSchema, env);
  return {
    brokers: values.KAFKA_BROKERS,
    groupId: values.KAFKA_GROUP_ID,
    topics: [values.TOPIC_CONVERSATIONS, values.TOPIC_MESSAGES, values.TOPIC_END_USERS],
    smsTopic: values.TOPIC_SMS_TRIGGERS,
  };
};

/** Reads where Redis is. Throws `ConfigError`. */
export const readQueueConfig = (env: Environment = process.env): QueueConfig => ({
  redisUrl: parseEnv(queueSchema, env).REDIS_URL,
});

/** Reads the secret in the ids of data-subject requests, that of export-api. Throws `ConfigError`. */
export const readRequestSecret = (env: Environment = process.env): string =>
  parseEnv(requestSchema, env).CURSOR_SECRET;

/** Reads the secret that hides whom a suppression is about, that of ingest and jobs. Throws `ConfigError`. */
export const readSuppressionSecret = (env: Environment = process.env): string =>
  parseEnv(suppressionSchema, env).SUPPRESSION_SECRET;

/** Reads what the services are set to. Throws `ConfigError`. */
export const readServiceSettings = (env: Environment = process.env): ServiceSettings => {
  const values = parseEnv(servicesSchema, env);
  return {
    landing: values.LANDING === "on",
    landingDays: values.LANDING_DAYS,
    windowSeconds: values.UPLOAD_WINDOW_SECONDS,
    erasureDeadlineHours: values.ERASURE_DEADLINE_HOURS,
  };
};

/** Reads the users of the services that are given. Throws `ConfigError`. */
export const readServiceUsers = (env: Environment = process.env): ServiceUsers => {
  const values = parseEnv(usersSchema, env);
  return {
    writer: values.CLICKHOUSE_WRITER_URL ?? null,
    reader: values.CLICKHOUSE_READER_URL ?? null,
    intake: values.CLICKHOUSE_INTAKE_URL ?? null,
    jobs: values.CLICKHOUSE_JOBS_URL ?? null,
  };
};
