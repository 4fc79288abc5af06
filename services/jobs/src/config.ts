import { LOG_LEVELS, parseEnv } from "@conversation-export/runtime";
import { z } from "zod";

const schema = z.object({
  REDIS_URL: z.url({ protocol: /^rediss?$/ }),
  HOST: z.string().default("0.0.0.0"),
  METRICS_PORT: z.coerce.number().int().min(0).max(65_535).default(9090),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
  SHUTDOWN_DEADLINE_MS: z.coerce.number().int().min(1_000).default(30_000),
});

export type Config = {
  /** `redis://user:password@host:port` */
  readonly redisUrl: string;
  readonly host: string;
  /** 0 takes a free port. */
  readonly metricsPort: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly shutdownDeadlineMs: number;
};

/** Reads the configuration. Throws `ConfigError`, which names every wrong variable. */
export const readConfig = (env: Readonly<Record<string, string | undefined>> = process.env): Config => {
  const values = parseEnv(schema, env);
  return {
    redisUrl: values.REDIS_URL,
    host: values.HOST,
    metricsPort: values.METRICS_PORT,
    logLevel: values.LOG_LEVEL,
    shutdownDeadlineMs: values.SHUTDOWN_DEADLINE_MS,
  };
};
