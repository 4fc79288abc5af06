import { activeSpan, isRetryable, type Logger, retry, ServiceError } from "@conversation-export/runtime";
import { isStaleTicket, WarehouseError } from "@conversation-export/warehouse";
import type { IngestMetrics } from "../ingest-metrics.ts";

/** Throws stale tickets, final errors that are not retryable, and the signal's reason. */
export type KeepTrying = <T>(attempt: {
  readonly step: string;
  readonly signal: AbortSignal;
  readonly operation: () => Promise<T>;
  readonly isFinal: (error: unknown) => boolean;
  readonly onFailure?: () => void;
}) => Promise<T>;

/** Our own code failed, and would fail again. */
export const isBug = (error: unknown): boolean => {
  const origin = error instanceof WarehouseError ? error.cause : error;
  return origin instanceof TypeError || origin instanceof RangeError || origin instanceof ReferenceError;
};

const codeOf = (error: unknown): string => {
  if (error instanceof WarehouseError) return error.causeName;
  return error instanceof ServiceError ? error.code : "unknown";
};

export const createKeepTrying = (deps: {
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}): KeepTrying => {
  const { metrics, log } = deps;
  return ({ step, signal, operation, isFinal, onFailure }) =>
    retry(operation, {
      signal,
      maxMs: 10_000,
      retryable: (error) => !isStaleTicket(error) && (isRetryable(error) || !isFinal(error)),
      onRetry: (error, attempt, delayMs) => {
        onFailure?.();
        metrics.retries.inc({ step, code: codeOf(error) });
        activeSpan()?.addEvent("retry", { step, attempt, code: codeOf(error) });
        log.warn({ err: error, step, attempt, delayMs }, "a step failed, retrying");
      },
    });
};
