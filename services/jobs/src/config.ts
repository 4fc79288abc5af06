import { LIST_NAMES } from "@conversation-export/domain";
import {
  ConfigError,
  count,
  type Environment,
  port,
  processSettings,
  readClickhouseCluster,
  readSettings,
  serverSettings,
  type SettingReader,
  type Settings,
  shared,
  variable,
} from "@conversation-export/runtime";
import { z } from "zod";

const optional = (name: string, schema: z.ZodType<string>): SettingReader<string | null> =>
  variable(
    name,
    schema.optional().transform((value) => value ?? null),
  );

/** 0 becomes null: no schedule. */
const interval = (name: string, fallbackSeconds: number): SettingReader<number | null> =>
  variable(
    name,
    count(fallbackSeconds, 0).transform((seconds) => (seconds === 0 ? null : seconds * 1000)),
  );

const boardPassword = z.string().min(12, "must have at least 12 characters");

const PROCESS = processSettings("conversation-export-jobs");

const BOARD = {
  metricsPort: PROCESS.metricsPort,
  port: variable("BOARD_PORT", port(9091)),
  user: variable("BOARD_USER", z.string().min(1).default("operator")),
  password: optional("BOARD_PASSWORD", boardPassword),
  previousPassword: optional("BOARD_PASSWORD_PREVIOUS", boardPassword),
};

/** null without a password: no board. @throws ConfigError */
const readBoard = (
  env: Environment,
): { readonly port: number; readonly user: string; readonly passwords: readonly string[] } | null => {
  const { password, previousPassword, metricsPort, ...rest } = readSettings(BOARD, env);
  if (password === null) return null;
  if (rest.port !== 0 && rest.port === metricsPort)
    throw new ConfigError(["BOARD_PORT: must not be that of METRICS_PORT"]);
  return { ...rest, passwords: previousPassword === null ? [password] : [password, previousPassword] };
};

const SETTINGS = {
  redis: serverSettings.redis,
  clickhouse: serverSettings.clickhouse,
  topology: readClickhouseCluster,
  kafka: serverSettings.kafka,
  groupId: shared.groupId,
  topics: shared.eventTopicsOf(LIST_NAMES),
  maxTimeAheadMs: shared.maxTimeAheadMs,
  landingDays: shared.landingDays,
  backfillPartEvents: variable("BACKFILL_PART_EVENTS", count(20_000)),
  backfillLocations: variable(
    "BACKFILL_LOCATIONS",
    z
      .string()
      .transform((list) => list.split(",").map((place) => place.trim()))
      .refine(
        (places) => places.every((place) => /^(\/|s3:\/\/[^/]+)/.test(place)),
        "must be folders (/data/exports) or s3://bucket/prefix, separated by commas",
      )
      .default([]),
  ),
  s3: {
    endpoint: optional("AWS_ENDPOINT_URL_S3", z.url({ protocol: /^https?$/ })),
    region: optional("AWS_REGION", z.string().min(1)),
  },
  suppressionSecret: shared.suppressionSecret,
  maxSuppressions: shared.maxSuppressions,
  erasureDeadlineMs: shared.erasureDeadlineMs,
  /** Requests that reach more than both wait for an operator. */
  erasureApproval: {
    percent: variable("ERASURE_APPROVAL_PERCENT", z.coerce.number().min(0).max(100).default(1)),
    records: variable("ERASURE_APPROVAL_RECORDS", count(1_000, 0)),
  },
  /** After this silence a job goes to another worker. */
  lockMs: variable("JOB_LOCK_MS", count(30_000, 2_000)),
  uploadWindow: {
    seconds: shared.uploadWindowSeconds,
    graceSeconds: variable("UPLOAD_WINDOW_GRACE_SECONDS", count(120, 0)),
  },
  /** null: only started by hand. */
  everyMs: {
    windows: interval("WINDOWS_INTERVAL_SECONDS", 60),
    compact: interval("COMPACT_INTERVAL_SECONDS", 600),
    erasure: interval("ERASURE_INTERVAL_SECONDS", 300),
    retention: interval("RETENTION_INTERVAL_SECONDS", 604_800),
    reconcile: interval("RECONCILE_INTERVAL_SECONDS", 3_600),
  },
  board: readBoard,
  ...PROCESS,
};

export type Config = Settings<typeof SETTINGS>;

export const readConfig = (env: Environment = process.env): Config => readSettings(SETTINGS, env);
