import { parseRateWindows, type RateWindow } from "@conversation-export/domain";
import {
  type ClickhouseServer,
  type Environment,
  type KafkaServers,
  LOG_LEVELS,
  parseEnv,
  readAll,
  readClickhouseIntake,
  readClickhouseServer,
  readKafkaServers,
  readRedisServer,
  readTraceSettings,
  type RedisServer,
  type TraceSettings,
} from "@conversation-export/runtime";
import { z } from "zod";
import type { LimitName } from "@conversation-export/warehouse";

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const count = (fallback: number) => z.coerce.number().int().min(1).default(fallback);
const secret = z.string().min(32, "must have at least 32 characters");
const windows = z.string().transform((text, context) => {
  const parsed = parseRateWindows(text);
  if (parsed !== undefined) return parsed;
  context.addIssue("must be a list such as 10/1s,100/1m, or off");
  return z.NEVER;
});
const day = z.iso.date("must be a day such as 2026-12-31").transform((text) => new Date(`${text}T00:00:00Z`));
const listOf = (shape: RegExp, problem: string) =>
  z
    .string()
    .transform((list) => list.split(",").map((entry) => entry.trim()))
    .pipe(z.array(z.string().regex(shape, problem)).min(1));

const schema = z.object({
  HOST: z.string().default("0.0.0.0"),
  PORT: port(8080),
  METRICS_PORT: port(9090),
  TOPIC_SMS_TRIGGERS: z.string().default("sms-triggers"),
  CURSOR_SECRET: secret,
  CURSOR_SECRET_PREVIOUS: secret.optional(),
  PUBLIC_BASE_URL: z.url({ protocol: /^https?$/ }).optional(),
  TRUSTED_PROXIES: listOf(
    /^(?:loopback|linklocal|uniquelocal|[\d.]+(?:\/\d+)?|[\dA-Fa-f]*:[\dA-Fa-f:.]*(?:\/\d+)?)$/,
    "must be addresses, networks such as 10.0.0.0/8, loopback, linklocal or uniquelocal",
  ).default(["loopback"]),
  LINK_BOUNDS: z.enum(["same", "advancing"]).default("same"),
  LEGACY_DEPRECATION: day.optional(),
  LEGACY_SUNSET: day.optional(),
  RATE_LIMITS: windows.prefault("10/1s"),
  RATE_LIMITS_CONVERSATIONS: windows.optional(),
  RATE_LIMITS_MESSAGES: windows.optional(),
  RATE_LIMITS_END_USERS: windows.optional(),
  RATE_LIMITS_DATA_SUBJECT_REQUEST: windows.optional(),
  RATE_LIMITS_SMS_TRIGGER: windows.optional(),
  AUTH_FAILURE_LIMITS: windows.prefault("20/1m"),
  MAX_PAGES: count(16),
  MAX_PAGES_PER_CLIENT: count(4),
  MAX_WAITING_PAGES: count(256),
  PAGE_WAIT_MS: count(10_000),
  MAX_EVENT_LOOP_DELAY_MS: z.coerce.number().int().min(0).default(2_000),
  KEY_CACHE_SECONDS: z.coerce.number().min(1).max(25).default(10),
  IDLE_TIMEOUT_MS: z.coerce.number().int().min(1_000).default(60_000),
  SHUTDOWN_DEADLINE_MS: z.coerce.number().int().min(1_000).default(30_000),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
});
// RFC 9745, 4.
const checked = schema.refine(
  ({ LEGACY_DEPRECATION: from, LEGACY_SUNSET: to }) => from === undefined || to === undefined || from <= to,
  { path: ["LEGACY_SUNSET"], error: "must not be earlier than LEGACY_DEPRECATION" },
);

export type Config = {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly metricsPort: number;
  /** With the user that reads. */
  readonly clickhouse: ClickhouseServer;
  /** With the user that stores data-subject requests. */
  readonly clickhouseIntake: ClickhouseServer;
  readonly redis: RedisServer;
  readonly kafka: KafkaServers;
  readonly smsTopic: string;
  readonly cursorSecret: string;
  readonly previousCursorSecret: string | undefined;
  /** The service address with its `/api` prefix, without a slash at the end. */
  readonly publicBaseUrl: string | undefined;
  /** Whose X-Forwarded-* headers count: addresses, networks, or names of ranges. */
  readonly trustedProxies: readonly string[];
  readonly linkBounds: "same" | "advancing";
  readonly legacy: { readonly deprecation: Date | undefined; readonly sunset: Date | undefined };
  /** For clients without limits of their own; an empty list means no limit. */
  readonly rateLimits: Readonly<Record<LimitName, readonly RateWindow[]>>;
  /** Failed authentications of one address. */
  readonly authFailureLimits: readonly RateWindow[];
  readonly pages: {
    readonly perProcess: number;
    readonly perClient: number;
    readonly maxWaiting: number;
    readonly maxWaitMs: number;
  };
  /** 0: overload is not looked for. */
  readonly maxEventLoopDelayMs: number;
  readonly keyCacheMs: number;
  readonly idleMs: number;
  readonly shutdownDeadlineMs: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** null: there are none. */
  readonly traces: TraceSettings | null;
};

/** Reads the configuration. Throws `ConfigError`, which names every wrong variable. */
export const readConfig = (env: Environment = process.env): Config => {
  const [clickhouse, clickhouseIntake, redis, kafka, traces, values] = readAll(
    () => readClickhouseServer(env),
    () => readClickhouseIntake(env),
    () => readRedisServer(env),
    () => readKafkaServers(env),
    () => readTraceSettings(env, "conversation-export-export-api"),
    () => parseEnv(checked, env),
  );
  return {
    host: values.HOST,
    port: values.PORT,
    metricsPort: values.METRICS_PORT,
    clickhouse,
    clickhouseIntake,
    redis,
    kafka,
    smsTopic: values.TOPIC_SMS_TRIGGERS,
    cursorSecret: values.CURSOR_SECRET,
    previousCursorSecret: values.CURSOR_SECRET_PREVIOUS,
    publicBaseUrl: values.PUBLIC_BASE_URL?.replace(/\/+$/, ""),
    trustedProxies: values.TRUSTED_PROXIES,
    linkBounds: values.LINK_BOUNDS,
    legacy: { deprecation: values.LEGACY_DEPRECATION, sunset: values.LEGACY_SUNSET },
    rateLimits: {
      conversations: values.RATE_LIMITS_CONVERSATIONS ?? values.RATE_LIMITS,
      messages: values.RATE_LIMITS_MESSAGES ?? values.RATE_LIMITS,
      end_users: values.RATE_LIMITS_END_USERS ?? values.RATE_LIMITS,
      data_subject_request: values.RATE_LIMITS_DATA_SUBJECT_REQUEST ?? values.RATE_LIMITS,
      sms_trigger: values.RATE_LIMITS_SMS_TRIGGER ?? values.RATE_LIMITS,
    },
    authFailureLimits: values.AUTH_FAILURE_LIMITS,
    pages: {
      perProcess: values.MAX_PAGES,
      perClient: values.MAX_PAGES_PER_CLIENT,
      maxWaiting: values.MAX_WAITING_PAGES,
      maxWaitMs: values.PAGE_WAIT_MS,
    },
    maxEventLoopDelayMs: values.MAX_EVENT_LOOP_DELAY_MS,
    keyCacheMs: values.KEY_CACHE_SECONDS * 1000,
    idleMs: values.IDLE_TIMEOUT_MS,
    shutdownDeadlineMs: values.SHUTDOWN_DEADLINE_MS,
    logLevel: values.LOG_LEVEL,
    traces,
  };
};
