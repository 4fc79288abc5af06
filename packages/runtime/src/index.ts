export { createKey, parseKey } from "./api-key.ts";
export { configOrExit } from "./config-or-exit.ts";
export { parseEnv } from "./env.ts";
export { ConfigError, isRetryable, ServiceError } from "./errors.ts";
export { createHealthServer, type HealthCheck, type HealthServer, type Mount } from "./health.ts";
export { createLogger, LOG_LEVELS, type Logger, type LogLevel } from "./logger.ts";
export { type Counter, createMetrics, type Gauge, type Histogram, type Metrics } from "./metrics.ts";
export { backoffMs, type RetryOptions, retry } from "./retry.ts";
export { type Part, type Running, run } from "./run.ts";
