import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { activeSpan } from "./spans.ts";

export type { Logger };

/** Levels in the order of growing silence. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const REDACTED = ["password", "secret", "token", "authorization", "apiKey", "sasl"];

/** New for each line: pino adds the fields of the line to it. */
const traceFields = (): object => {
  const span = activeSpan();
  if (span === undefined) return {};
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
};

/**
 * JSON lines on stdout with ISO time and the service's name; errors go under `err`.
 * A line that is written within a recorded span names it. Callers log identifiers of the machinery (topic, offset, code), never record content.
 */
export const createLogger = (deps: {
  service: string;
  level: LogLevel;
  destination?: DestinationStream;
}): Logger => {
  const options = {
    base: { service: deps.service },
    level: deps.level,
    mixin: traceFields,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      // An error of Redis tells the command that was refused, AUTH too.
      paths: [...REDACTED, ...REDACTED.map((name) => `*.${name}`), "err.command.args"],
      censor: "[redacted]",
    },
  };
  return deps.destination === undefined ? pino(options) : pino(options, deps.destination);
};
