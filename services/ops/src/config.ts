import { parseEnv } from "@conversation-export/runtime";
import { z } from "zod";

type Environment = Readonly<Record<string, string | undefined>>;

const clusterName = z.string().regex(/^[\w-]+$/, "must be a name of letters, digits, _ and -");
const topicName = z
  .string()
  .regex(/^[\w.-]{1,200}$/, "must be a topic name of up to 200 letters, digits, '.', '_' and '-'");

const warehouseSchema = z.object({
  CLICKHOUSE_URL: z.url({ protocol: /^https?$/, error: "must be http://user:password@host:port/database" }),
  CLUSTER: clusterName.optional(),
});

const busSchema = z.object({
  KAFKA_BROKERS: z
    .string()
    .transform((list) => list.split(",").map((broker) => broker.trim()))
    .pipe(z.array(z.string().regex(/^.+:\d+$/, "must be host:port,host:port,…")).min(1)),
  TOPIC_CONVERSATIONS: topicName.default("conversations"),
  TOPIC_MESSAGES: topicName.default("messages"),
  TOPIC_END_USERS: topicName.default("end-users"),
  TOPIC_SMS_TRIGGERS: topicName.default("sms-triggers"),
});

export type WarehouseConfig = {
  /** `http://user:password@host:port/database` of the user for migrations */
  readonly url: string;
  /** null: a single server. */
  readonly cluster: string | null;
};

export type BusConfig = {
  readonly brokers: readonly string[];
  /** The topics of the events, without those of the dead letters. */
  readonly topics: readonly string[];
  /** The topic of what export-api asks the platform to do. */
  readonly smsTopic: string;
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
    topics: [values.TOPIC_CONVERSATIONS, values.TOPIC_MESSAGES, values.TOPIC_END_USERS],
    smsTopic: values.TOPIC_SMS_TRIGGERS,
  };
};
