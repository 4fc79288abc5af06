import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { LOG_LEVELS } from "../logger.ts";
import { readClickhouseServer } from "./clickhouse-env.ts";
import { readKafkaServers } from "./kafka-env.ts";
import { readRedisServer } from "./redis-env.ts";
import { count, port, readSettings, secret, variable } from "./settings.ts";
import type { Environment } from "./env.ts";
import { readTraceSettings } from "./trace-env.ts";

// Kafka allows 249 characters; the dead-letter topic's suffix takes 12.
const topicName = z
  .string()
  .regex(/^[\w.-]{1,237}$/, "must be a topic name of up to 237 letters, digits, '.', '_' and '-'");

export const eventTopic = (list: string): { readonly name: string; readonly byDefault: string } => ({
  name: `TOPIC_${list.toUpperCase()}`,
  byDefault: list.replaceAll("_", "-"),
});

const eventTopicsOf =
  <List extends string>(lists: readonly List[]) =>
  (env: Environment): Readonly<Record<List, string>> => {
    const readers = Object.fromEntries(
      lists.map((list) => {
        const { name, byDefault } = eventTopic(list);
        return [list, variable(name, topicName.default(byDefault))];
      }),
    );
    const topics = readSettings(readers, env) as Readonly<Record<List, string>>;
    const repeated = lists.filter((list, at) =>
      lists.slice(0, at).some((other) => topics[other] === topics[list]),
    );
    if (repeated.length === 0) return topics;
    throw new ConfigError(repeated.map((list) => `${eventTopic(list).name}: must be a topic of its own`));
  };

export const shared = {
  groupId: variable("KAFKA_GROUP_ID", z.string().min(1).default("conversation-export-ingest")),
  eventTopicsOf,
  smsTopic: variable("TOPIC_SMS_TRIGGERS", topicName.default("sms-triggers")),
  /** How far an event's `time` may lie after its arrival on the bus. */
  maxTimeAheadMs: variable(
    "MAX_TIME_AHEAD_SECONDS",
    count(300, 0).transform((seconds) => seconds * 1000),
  ),
  landing: variable(
    "LANDING",
    z
      .enum(["on", "off"])
      .default("on")
      .transform((value) => value === "on"),
  ),
  landingDays: variable("LANDING_DAYS", count(14, 1, 3_650)),
  /** Keys the hashes of erased persons. */
  suppressionSecret: variable("SUPPRESSION_SECRET", secret),
  /** About 16 bytes each; clients with more are looked up. */
  maxSuppressions: variable("SUPPRESSIONS_IN_MEMORY", count(5_000_000, 0, 100_000_000)),
  /** Signs cursors and makes the ids of erasure requests. */
  cursorSecret: variable("CURSOR_SECRET", secret),
  /** The secret before or after a change: accepted, used for nothing new. */
  previousCursorSecret: variable("CURSOR_SECRET_PREVIOUS", secret.optional()),
  erasureDeadlineMs: variable(
    "ERASURE_DEADLINE_HOURS",
    count(72).transform((hours) => hours * 3_600_000),
  ),
  uploadWindowSeconds: variable("UPLOAD_WINDOW_SECONDS", count(3_600, 1, 86_400)),
};

export const serverSettings = {
  kafka: readKafkaServers,
  clickhouse: readClickhouseServer,
  redis: readRedisServer,
};

export const processSettings = (service: string) => ({
  host: variable("HOST", z.string().default("0.0.0.0")),
  metricsPort: variable("METRICS_PORT", port(9090)),
  shutdownDeadlineMs: variable("SHUTDOWN_DEADLINE_MS", count(30_000, 1_000)),
  logLevel: variable("LOG_LEVEL", z.enum(LOG_LEVELS).default("info")),
  traces: (env: Environment) => readTraceSettings(env, service),
});
