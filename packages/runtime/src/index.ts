export { createKey, parseKey } from "./api-key.ts";
export {
  type ClickhouseCluster,
  type ClickhouseServer,
  readClickhouseCluster,
  readClickhouseIntake,
  readClickhouseServer,
  readClickhouseUser,
} from "./clickhouse-env.ts";
export { configOrExit } from "./config-or-exit.ts";
export { type Environment, parseEnv, readAll } from "./env.ts";
export { ConfigError, isRetryable, ServiceError } from "./errors.ts";
export { createHealthServer, type HealthCheck, type HealthServer, type Mount } from "./health.ts";
export { type KafkaServers, readKafkaServers } from "./kafka-env.ts";
export { createLogger, LOG_LEVELS, type Logger, type LogLevel } from "./logger.ts";
export { type Counter, createMetrics, type Gauge, type Histogram, type Metrics } from "./metrics.ts";
export { parseRedisUrl, readRedisServer, type RedisServer } from "./redis-env.ts";
export { backoffMs, type RetryOptions, retry } from "./retry.ts";
export {
  activeSpan,
  failSpan,
  inSpan,
  isSampled,
  isTracing,
  readTraceParent,
  runInSpan,
  type Span,
  type SpanContext,
  type SpanOptions,
  startSpan,
  traceHeaders,
  withinSpan,
} from "./spans.ts";
export { type TlsTrouble, tlsTroubleOf } from "./tls-trouble.ts";
export { readTraceSettings, type TraceSettings } from "./trace-env.ts";
export { type RecordedSpan, recordSpans } from "./record-spans.ts";
export { startTracing } from "./tracing.ts";
export { type Part, type Running, run } from "./run.ts";
