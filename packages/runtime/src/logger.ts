import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { activeSpan } from "./trace/spans.ts";
import { visibleJson } from "./visible-json.ts";

export type { Logger };

/** From the most to the least verbose. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const REDACTED = ["password", "secret", "token", "authorization", "apiKey", "sasl"];

/** Returns a new object for each line, since pino adds the fields of the line to it. */
const traceFields = (): object => {
  const span = activeSpan();
  if (span === undefined) return {};
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
};

/**
 * JSON lines on stdout with ISO time and the service's name, in which every character shows; errors go under `err`. A
 * line written within a recorded span has its ids. Callers log technical identifiers (topic, offset, code), never
 * record content.
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
    hooks: { streamWrite: visibleJson },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      // An error of Redis holds the refused command, which may be AUTH with its password.
      paths: [...REDACTED, ...REDACTED.map((name) => `*.${name}`), "err.command.args"],
      censor: "[redacted]",
    },
  };
  return deps.destination === undefined ? pino(options) : pino(options, deps.destination);
};
