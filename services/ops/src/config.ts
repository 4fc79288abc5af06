import { LIST_NAMES } from "@conversation-export/domain";
import {
  type ClickhouseCluster,
  type ClickhouseServer,
  type ClickhouseUser,
  ConfigError,
  type Environment,
  type KafkaServers,
  readClickhouseCluster,
  readClickhouseUser,
  readSettings,
  type RedisServer,
  serverSettings,
  type SettingReader,
  type Settings,
  shared,
  variable,
} from "@conversation-export/runtime";
import { z } from "zod";

/** ClickHouse as the user for migrations. */
export type WarehouseConfig = ClickhouseServer & ClickhouseCluster;

export type BusConfig = KafkaServers & {
  /** The consumer group of ingest. */
  readonly groupId: string;
  /** Event topics, without the dead-letter topics. */
  readonly topics: readonly string[];
  /** Topic of the commands that export-api sends to the platform. */
  readonly smsTopic: string;
};

const SERVICE_SETTINGS = {
  landing: shared.landing,
  landingDays: shared.landingDays,
  windowSeconds: shared.uploadWindowSeconds,
  erasureDeadlineMs: shared.erasureDeadlineMs,
};

/** Settings that must have the same values as for the services. */
export type ServiceSettings = Settings<typeof SERVICE_SETTINGS>;

const user =
  (name: ClickhouseUser): SettingReader<ClickhouseServer | null> =>
  (env) =>
    readClickhouseUser(env, name);

const SERVICE_USERS = {
  writer: user("WRITER"),
  reader: user("READER"),
  lookup: user("LOOKUP"),
  intake: user("INTAKE"),
  jobs: user("JOBS"),
  analyst: user("ANALYST"),
};

/** ClickHouse with the user of each service. null: not configured, so its grants are not checked. */
export type ServiceUsers = Settings<typeof SERVICE_USERS>;

/**
 * Reads the address of ClickHouse and its cluster.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readWarehouseConfig = (env: Environment): WarehouseConfig => {
  const { server, cluster } = readSettings(
    { server: serverSettings.clickhouse, cluster: readClickhouseCluster },
    env,
  );
  return { ...server, ...cluster };
};

/**
 * Reads the addresses of Kafka, the consumer group and the topics.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readBusConfig = (env: Environment): BusConfig => {
  const { servers, topics, ...names } = readSettings(
    {
      servers: serverSettings.kafka,
      groupId: shared.groupId,
      topics: shared.eventTopicsOf(LIST_NAMES),
      smsTopic: shared.smsTopic,
    },
    env,
  );
  return { ...servers, ...names, topics: Object.values(topics) };
};

/**
 * Reads the topics of events alone, in the order of the lists.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readTopics = (env: Environment): readonly string[] =>
  Object.values(readSettings({ topics: shared.eventTopicsOf(LIST_NAMES) }, env).topics);

/**
 * Reads the address of Redis.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readQueueConfig = (env: Environment): RedisServer => serverSettings.redis(env);

/** The same, or null where `REDIS_URL` is not set, for what is only shown in addition. */
export const readOptionalQueueConfig = (env: Environment): RedisServer | null =>
  (env["REDIS_URL"] ?? "") === "" ? null : readQueueConfig(env);

const operator = variable(
  "OPERATOR",
  z
    .string()
    .regex(/^[^\p{Cc}]{1,200}$/u, "must be 1 to 200 characters")
    .optional(),
);

/**
 * Reads who runs this command.
 *
 * @throws ConfigError when nobody says it
 */
export const readOperator = (env: Environment): string => {
  const name = operator(env);
  if (name !== undefined) return name;
  throw new ConfigError([
    "OPERATOR: is required: who runs this command, such as a name or an e-mail address; the audit tells it",
  ]);
};

const REQUEST_SECRET = { idSecret: shared.cursorSecret };

/**
 * Reads the secret for the ids of erasure requests; it equals the cursor secret of export-api.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readRequestSecret = (env: Environment): Settings<typeof REQUEST_SECRET> =>
  readSettings(REQUEST_SECRET, env);

/**
 * Reads the key for the hashes of erased persons; the same as for ingest and jobs.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readSuppressionSecret = (env: Environment): string => shared.suppressionSecret(env);

/**
 * Reads the settings that must have the same values as for the services.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readServiceSettings = (env: Environment): ServiceSettings => readSettings(SERVICE_SETTINGS, env);

/**
 * Reads the configured users of the services.
 *
 * @throws ConfigError that names every invalid variable
 */
export const readServiceUsers = (env: Environment): ServiceUsers => readSettings(SERVICE_USERS, env);
