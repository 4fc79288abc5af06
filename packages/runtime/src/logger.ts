import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";

export type { Logger };

/** Levels in the order of growing silence. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const REDACTED = ["password", "secret", "token", "authorization", "apiKey", "sasl"];

/**
 * JSON lines on stdout with ISO time and the service's name; errors go under `err`.
 * Callers log identifiers of the machinery (topic, offset, code), never record content.
 */
export const createLogger = (deps: {
  service: string;
  level: LogLevel;
  destination?: DestinationStream;
}): Logger => {
  const options = {
    base: { service: deps.service },
    level: deps.level,
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
