import {
  type ClickhouseCluster,
  type ClickhouseServer,
  type Environment,
  type KafkaServers,
  parseEnv,
  readAll,
  readClickhouseCluster,
  readClickhouseServer,
  readClickhouseUser,
  readKafkaServers,
  readRedisServer,
  type RedisServer,
} from "@conversation-export/runtime";
import { z } from "zod";

const topicName = z
  .string()
  .regex(/^[\w.-]{1,200}$/, "must be a topic name of up to 200 letters, digits, '.', '_' and '-'");
const secret = z.string().min(32, "must have at least 32 characters");

const busSchema = z.object({
  KAFKA_GROUP_ID: z.string().min(1).default("conversation-export-ingest"),
  TOPIC_CONVERSATIONS: topicName.default("conversations"),
  TOPIC_MESSAGES: topicName.default("messages"),
  TOPIC_END_USERS: topicName.default("end-users"),
  TOPIC_SMS_TRIGGERS: topicName.default("sms-triggers"),
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

/** ClickHouse with the user for migrations. */
export type WarehouseConfig = ClickhouseServer & ClickhouseCluster;

export type BusConfig = KafkaServers & {
  /** The consumer group of ingest. */
  readonly groupId: string;
  /** The topics of the events, without those of the dead letters. */
  readonly topics: readonly string[];
  /** The topic of what export-api asks the platform to do. */
  readonly smsTopic: string;
};

/** Settings of the services, which have to be as the services have them. */
export type ServiceSettings = {
  readonly landing: boolean;
  readonly landingDays: number;
  /** The length of an upload window. */
  readonly windowSeconds: number;
  readonly erasureDeadlineHours: number;
};

/** ClickHouse with the users of the services; null: not given, so not looked at. */
export type ServiceUsers = Readonly<Record<"writer" | "reader" | "intake" | "jobs", ClickhouseServer | null>>;

/** Reads where ClickHouse is. Throws `ConfigError`, which names every wrong variable. */
export const readWarehouseConfig = (env: Environment = process.env): WarehouseConfig => {
  const [server, cluster] = readAll(
    () => readClickhouseServer(env),
    () => readClickhouseCluster(env),
  );
  return { ...server, ...cluster };
};

/** Reads where Kafka is and how its topics are called. Throws `ConfigError`. */
export const readBusConfig = (env: Environment = process.env): BusConfig => {
  const [servers, values] = readAll(
    () => readKafkaServers(env),
    () => parseEnv(busSchema, env),
  );
  return {
    ...servers,
    groupId: values.KAFKA_GROUP_ID,
    topics: [values.TOPIC_CONVERSATIONS, values.TOPIC_MESSAGES, values.TOPIC_END_USERS],
    smsTopic: values.TOPIC_SMS_TRIGGERS,
  };
};

/** Reads where Redis is. Throws `ConfigError`. */
export const readQueueConfig = (env: Environment = process.env): RedisServer => readRedisServer(env);

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
  const [writer, reader, intake, jobs] = readAll(
    () => readClickhouseUser(env, "WRITER"),
    () => readClickhouseUser(env, "READER"),
    () => readClickhouseUser(env, "INTAKE"),
    () => readClickhouseUser(env, "JOBS"),
  );
  return { writer, reader, intake, jobs };
};
