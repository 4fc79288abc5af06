import { LIST_NAMES, type ListName } from "@conversation-export/domain";
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

export type WarehouseConfig = ClickhouseServer & ClickhouseCluster;

export type BusConfig = KafkaServers & {
  readonly groupId: string;
  /** Without the dead-letter topics. */
  readonly topics: readonly string[];
  /** For triggers that export-api sends. */
  readonly smsTopic: string;
};

const SERVICE_SETTINGS = {
  landing: shared.landing,
  landingDays: shared.landingDays,
  windowSeconds: shared.uploadWindowSeconds,
  erasureDeadlineMs: shared.erasureDeadlineMs,
};

/** Must be the same as for the services. */
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

/** null: its grants are not checked. */
export type ServiceUsers = Settings<typeof SERVICE_USERS>;

/** @throws ConfigError, as all readers here, that names every invalid variable */
export const readWarehouseConfig = (env: Environment): WarehouseConfig => {
  const { server, cluster } = readSettings(
    { server: serverSettings.clickhouse, cluster: readClickhouseCluster },
    env,
  );
  return { ...server, ...cluster };
};

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

export type EventTopics = Readonly<Record<ListName, string>>;

export const readTopics = (env: Environment): EventTopics => shared.eventTopicsOf(LIST_NAMES)(env);

export const readQueueConfig = (env: Environment): RedisServer => serverSettings.redis(env);

/** null without `REDIS_URL`. */
export const readOptionalQueueConfig = (env: Environment): RedisServer | null =>
  (env["REDIS_URL"] ?? "") === "" ? null : readQueueConfig(env);

const operator = variable(
  "OPERATOR",
  z
    .string()
    .regex(/^[^\p{Cc}]{1,200}$/u, "must be 1 to 200 characters")
    .optional(),
);

export const readOperator = (env: Environment): string => {
  const name = operator(env);
  if (name !== undefined) return name;
  throw new ConfigError([
    "OPERATOR: is required: who runs this command, such as a name or an e-mail address; the audit tells it",
  ]);
};

/** The cursor secret of export-api. */
export const readRequestSecret = (env: Environment): string => shared.cursorSecret(env);

export const readSuppressionSecret = (env: Environment): string => shared.suppressionSecret(env);

/** Must be the same as for the services. */
export const readServiceSettings = (env: Environment): ServiceSettings => readSettings(SERVICE_SETTINGS, env);

export const readServiceUsers = (env: Environment): ServiceUsers => readSettings(SERVICE_USERS, env);
