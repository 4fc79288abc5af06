import {
  byList,
  LINK_BOUNDS,
  MAX_NAMES,
  parseRateWindows,
  type RateWindow,
} from "@conversation-export/domain";
import {
  ConfigError,
  count,
  type Environment,
  port,
  processSettings,
  readSettings,
  requireClickhouseUser,
  serverSettings,
  type SettingReader,
  type Settings,
  shared,
  variable,
} from "@conversation-export/runtime";
import type { LimitName } from "@conversation-export/warehouse";
import { z } from "zod";

const onOff = (byDefault: "on" | "off") =>
  z
    .enum(["on", "off"])
    .default(byDefault)
    .transform((value) => value === "on");

/** An empty list means no limit. */
const rateWindows = z.string().transform((text, context): readonly RateWindow[] => {
  const parsed = parseRateWindows(text);
  if (parsed !== undefined) return parsed;
  context.addIssue("must be a list such as 10/1s,100/1m, or off");
  return z.NEVER;
});

const commonRateLimits = variable("RATE_LIMITS", rateWindows.prefault("10/1s"));

const REQUEST_WINDOWS = "1/1s,100/1h,1000/1d";

/** Per day too, since each trigger costs money. */
const TRIGGER_WINDOWS = "10/1s,10000/1d";

const rateLimits =
  (operation: string): SettingReader<readonly RateWindow[]> =>
  (env) => {
    const own = variable(`RATE_LIMITS_${operation}`, rateWindows.optional());
    const limits = readSettings({ own, common: commonRateLimits }, env);
    return limits.own ?? limits.common;
  };

const proxies = z
  .string()
  .transform((list) => list.split(",").map((entry) => entry.trim()))
  .pipe(
    z
      .array(
        z
          .string()
          .regex(
            /^(?:loopback|linklocal|uniquelocal|[\d.]+(?:\/\d+)?|[\dA-Fa-f]*:[\dA-Fa-f:.]*(?:\/\d+)?)$/,
            "must be addresses, networks such as 10.0.0.0/8, loopback, linklocal or uniquelocal",
          ),
      )
      .min(1),
  );

const day = z.iso.date("must be a day such as 2026-12-31").transform((text) => new Date(`${text}T00:00:00Z`));

const LEGACY_DATES = {
  deprecation: variable("LEGACY_DEPRECATION", day.optional()),
  sunset: variable("LEGACY_SUNSET", day.optional()),
};

/** @throws ConfigError when the sunset is earlier than the deprecation (RFC 9745, section 4) */
const readLegacyDates = (env: Environment): Settings<typeof LEGACY_DATES> => {
  const dates = readSettings(LEGACY_DATES, env);
  if (dates.deprecation === undefined || dates.sunset === undefined || dates.deprecation <= dates.sunset) {
    return dates;
  }
  throw new ConfigError(["LEGACY_SUNSET: must not be earlier than LEGACY_DEPRECATION"]);
};

const SETTINGS = {
  clickhouse: serverSettings.clickhouse,
  clickhouseLookup: (env: Environment) => requireClickhouseUser(env, "LOOKUP"),
  clickhouseIntake: (env: Environment) => requireClickhouseUser(env, "INTAKE"),
  redis: serverSettings.redis,
  kafka: serverSettings.kafka,
  port: variable("PORT", port(8080)),
  smsTopic: shared.smsTopic,
  cursorSecret: shared.cursorSecret,
  previousCursorSecret: shared.previousCursorSecret,
  /** With `/api`, without a trailing slash. */
  publicBaseUrl: variable(
    "PUBLIC_BASE_URL",
    z
      .url({ protocol: /^https?$/ })
      .transform((address) => address.replace(/\/+$/, ""))
      .optional(),
  ),
  trustedProxies: variable("TRUSTED_PROXIES", proxies.default(["loopback"])),
  linkBounds: variable("LINK_BOUNDS", z.enum(LINK_BOUNDS).default("same")),
  legacy: readLegacyDates,
  rateLimits: {
    ...byList((list) => rateLimits(list.toUpperCase())),
    data_subject_request: variable("RATE_LIMITS_DATA_SUBJECT_REQUEST", rateWindows.prefault(REQUEST_WINDOWS)),
    data_subject_request_status: rateLimits("DATA_SUBJECT_REQUEST_STATUS"),
    sms_trigger: variable("RATE_LIMITS_SMS_TRIGGER", rateWindows.prefault(TRIGGER_WINDOWS)),
  } satisfies Record<LimitName, unknown>,
  requestCaps: {
    open: variable("MAX_OPEN_DATA_SUBJECT_REQUESTS", count(1_000)),
    // Fewer than one request can hold would reject it every day.
    identifiersPerDay: variable("MAX_DATA_SUBJECT_IDENTIFIERS_PER_DAY", count(5_000, MAX_NAMES)),
  },
  erasureDeadlineMs: shared.erasureDeadlineMs,
  authFailureLimits: variable("AUTH_FAILURE_LIMITS", rateWindows.prefault("20/1m")),
  /** Look-ups that find no key, of all addresses. */
  authLookupLimits: variable("AUTH_LOOKUP_LIMITS", rateWindows.prefault("1200/1m")),
  pages: {
    perProcess: variable("MAX_PAGES", count(16)),
    perClient: variable("MAX_PAGES_PER_CLIENT", count(4)),
    maxWaiting: variable("MAX_WAITING_PAGES", count(256)),
    maxWaitMs: variable("PAGE_WAIT_MS", count(10_000)),
  },
  /** Per client, over all processes. */
  maxClientPages: variable("MAX_SHARED_PAGES_PER_CLIENT", count(8)),
  maxStreams: variable("MAX_STREAMS_PER_CLIENT", count(4)),
  /** 0: no check for overload. */
  maxEventLoopDelayMs: variable("MAX_EVENT_LOOP_DELAY_MS", count(2_000, 0)),
  keyCacheMs: variable(
    "KEY_CACHE_SECONDS",
    z.coerce
      .number()
      .min(1)
      .max(10)
      .default(10)
      .transform((seconds) => seconds * 1000),
  ),
  maxConnections: variable("MAX_CONNECTIONS", count(2_000)),
  hstsSubDomains: variable("HSTS_SUBDOMAINS", onOff("off")),
  reference: variable("REFERENCE", onOff("on")),
  idleMs: variable("IDLE_TIMEOUT_MS", count(60_000, 1_000)),
  ...processSettings("conversation-export-export-api"),
};

export type Config = Settings<typeof SETTINGS>;

export const readConfig = (env: Environment = process.env): Config => readSettings(SETTINGS, env);
