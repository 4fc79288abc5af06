import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { activeSpan } from "./trace/spans.ts";
import { visibleJson } from "./visible-json.ts";

export type { Logger };

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

const REDACTED = ["password", "secret", "token", "authorization", "apiKey", "sasl"];

/** A new object for each line, because pino adds the line's fields to it. */
const traceFields = (): object => {
  const span = activeSpan();
  if (span === undefined) return {};
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
};

/** Callers log technical identifiers (topic, offset, code), never record content. */
export const createLogger = (deps: {
  service: string;
  level: LogLevel;
  destination?: DestinationStream;
}): Logger => {
  const options = {
    base: { service: deps.service },
    level: deps.level,
    mixin: traceFields,
    hooks: { streamWrite: visibleJson },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      // Redis errors hold the failed command, which may be AUTH with its password.
      paths: [...REDACTED, ...REDACTED.map((name) => `*.${name}`), "err.command.args"],
      censor: "[redacted]",
    },
  };
  return deps.destination === undefined ? pino(options) : pino(options, deps.destination);
};
