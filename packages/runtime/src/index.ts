export { createKey, parseKey } from "./api-key.ts";
export {
  type ClickhouseCluster,
  type ClickhouseServer,
  type ClickhouseUser,
  readClickhouseCluster,
  readClickhouseServer,
  readClickhouseUser,
  requireClickhouseUser,
} from "./env/clickhouse-env.ts";
export { deriveKey } from "./derive-key.ts";
export type { Environment } from "./env/env.ts";
export {
  count,
  port,
  readSettings,
  secret,
  type Settings,
  type SettingReader,
  variable,
} from "./env/settings.ts";
export { eventTopic, processSettings, serverSettings, shared } from "./env/shared-settings.ts";
export { ConfigError, isRetryable, ServiceError } from "./errors.ts";
export { type KafkaServers, readKafkaServers } from "./env/kafka-env.ts";
export type { KafkaLogin, TokenEndpoint } from "./env/kafka-login-env.ts";
export { createLoop, type Loop } from "./loop.ts";
export { createLogger, type Logger } from "./logger.ts";
export { type Counter, createMetrics, type Histogram, type Metrics } from "./metrics.ts";
export { parseRedisUrl, readRedisServer, type RedisServer } from "./env/redis-env.ts";
export { backoffMs, retry, type RetryOptions } from "./retry.ts";
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
} from "./trace/spans.ts";
export { type TlsTrouble, tlsTroubleOf } from "./tls-trouble.ts";
export { type RecordedSpan, recordSpans } from "./trace/record-spans.ts";
export type { Part } from "./run.ts";
export { startService } from "./start-service.ts";
export { unlessAborted, within } from "./within.ts";
export { escapesOf, visibleJson } from "./visible-json.ts";
