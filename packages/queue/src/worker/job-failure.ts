import { isRetryable, ServiceError } from "@conversation-export/runtime";
import { UnrecoverableError } from "bullmq";

const FRAME = /([\w.-]+\.[cm]?[jt]s:\d+)(?::\d+)?\)?$/;

export const STOP_REASONS = {
  cancelled: () => new ServiceError("cancelled", "stopped on request"),
  stopping: () => new ServiceError("stopping", "the process stops", { retryable: true }),
  lock_lost: () => new ServiceError("lock_lost", "the lock is lost", { retryable: true }),
} as const;
export type StopReason = keyof typeof STOP_REASONS;

/** Only messages of ServiceError are free of personal data. */
export const describeFailure = (error: unknown): string => {
  if (error instanceof ServiceError) {
    const { code, message } = error;
    return message.startsWith(`${code}: `) ? message : `${code}: ${message}`;
  }
  if (!(error instanceof Error)) return "bug: something else than an error was thrown";
  const frame = error.stack
    ?.split("\n")
    .filter((line) => line.trimStart().startsWith("at ") && !line.includes("node_modules"))
    .map((line) => FRAME.exec(line)?.[1])
    .find((place) => place !== undefined);
  return `bug: ${error.name}${frame === undefined ? "" : ` at ${frame}`}; the log has the rest`;
};

export const codeOfFailure = (reason: string): string => {
  if (reason.startsWith("job stalled")) return "stalled";
  return /^([a-z][a-z0-9_]{0,60}): /.exec(reason)?.[1] ?? "other";
};

export const toQueueError = (error: unknown): Error => {
  const reason = describeFailure(error);
  return isRetryable(error) ? new Error(reason) : new UnrecoverableError(reason);
};
