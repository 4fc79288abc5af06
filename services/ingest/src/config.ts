import { LIST_NAMES } from "@conversation-export/domain";
import {
  count,
  type Environment,
  processSettings,
  readSettings,
  readClickhouseServer,
  readKafkaServers,
  type Settings,
  shared,
  variable,
} from "@conversation-export/runtime";

const SETTINGS = {
  kafka: readKafkaServers,
  clickhouse: readClickhouseServer,
  groupId: shared.groupId,
  sessionTimeoutMs: variable("KAFKA_SESSION_TIMEOUT_MS", count(30_000, 1_000)),
  topics: shared.eventTopicsOf(LIST_NAMES),
  suppressionSecret: shared.suppressionSecret,
  maxSuppressions: shared.maxSuppressions,
  /** null: landing is off. */
  landingDays: (env: Environment): number | null => {
    const { on, days } = readSettings({ on: shared.landing, days: shared.landingDays }, env);
    return on ? days : null;
  },
  limits: {
    maxRecords: variable("BATCH_MAX_RECORDS", count(10_000)),
    maxBytes: variable("BATCH_MAX_BYTES", count(64 * 1024 * 1024, 1024)),
    maxAgeMs: variable("BATCH_MAX_AGE_MS", count(500, 10)),
    maxTimeAheadMs: shared.maxTimeAheadMs,
  },
  bufferMaxBytes: variable("BUFFER_MAX_BYTES", count(256 * 1024 * 1024, 1024)),
  lagIntervalMs: variable("LAG_INTERVAL_MS", count(5_000, 100)),
  watermarkIntervalMs: variable("WATERMARK_INTERVAL_MS", count(2_000, 100)),
  ...processSettings("conversation-export-ingest"),
};

export type Config = Settings<typeof SETTINGS>;

export const readConfig = (env: Environment = process.env): Config => readSettings(SETTINGS, env);
