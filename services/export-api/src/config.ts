import { LOG_LEVELS, parseEnv } from "@conversation-export/runtime";
import { z } from "zod";

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const secret = z.string().min(32, "must have at least 32 characters");

const schema = z.object({
  HOST: z.string().default("0.0.0.0"),
  PORT: port(8080),
  METRICS_PORT: port(9090),
  CLICKHOUSE_URL: z.url({ protocol: /^https?$/ }),
  CURSOR_SECRET: secret,
  CURSOR_SECRET_PREVIOUS: secret.optional(),
  PUBLIC_BASE_URL: z.url({ protocol: /^https?$/ }).optional(),
  LINK_BOUNDS: z.enum(["same", "advancing"]).default("same"),
  KEY_CACHE_SECONDS: z.coerce.number().min(1).max(25).default(10),
  IDLE_TIMEOUT_MS: z.coerce.number().int().min(1_000).default(60_000),
  SHUTDOWN_DEADLINE_MS: z.coerce.number().int().min(1_000).default(30_000),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
});

export type Config = {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly metricsPort: number;
  /** `http://user:password@host:port/database` */
  readonly clickhouseUrl: string;
  readonly cursorSecret: string;
  readonly previousCursorSecret: string | undefined;
  /** The service address with its `/api` prefix, without a slash at the end. */
  readonly publicBaseUrl: string | undefined;
  readonly linkBounds: "same" | "advancing";
  readonly keyCacheMs: number;
  readonly idleMs: number;
  readonly shutdownDeadlineMs: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
};

/** Reads the configuration. Throws `ConfigError`, which names every wrong variable. */
export const readConfig = (env: Readonly<Record<string, string | undefined>> = process.env): Config => {
  const values = parseEnv(schema, env);
  return {
    host: values.HOST,
    port: values.PORT,
    metricsPort: values.METRICS_PORT,
    clickhouseUrl: values.CLICKHOUSE_URL,
    cursorSecret: values.CURSOR_SECRET,
    previousCursorSecret: values.CURSOR_SECRET_PREVIOUS,
    publicBaseUrl: values.PUBLIC_BASE_URL?.replace(/\/+$/, ""),
    linkBounds: values.LINK_BOUNDS,
    keyCacheMs: values.KEY_CACHE_SECONDS * 1000,
    idleMs: values.IDLE_TIMEOUT_MS,
    shutdownDeadlineMs: values.SHUTDOWN_DEADLINE_MS,
    logLevel: values.LOG_LEVEL,
  };
};
