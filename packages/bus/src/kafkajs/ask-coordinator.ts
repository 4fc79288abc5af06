import { retry } from "@conversation-export/runtime";
import { mayPass, protocolErrorType } from "./errors.ts";

const DEADLINE_MS = 20_000;
const START_DEADLINE_MS = 120_000;

const NOT_FOUND = "KafkaJSGroupCoordinatorNotFound";

const PASSING: ReadonlySet<string> = new Set([
  "GROUP_LOAD_IN_PROGRESS",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR_FOR_GROUP",
]);

/** `question` must look the coordinator up each time. */
export const askCoordinator = <T>(question: () => Promise<T>, signal: AbortSignal): Promise<T> =>
  retry(question, {
    signal,
    initialMs: 200,
    maxMs: 2_000,
    deadlineMs: DEADLINE_MS,
    retryable: (error) => PASSING.has(protocolErrorType(error) ?? ""),
  });

/** A new cluster first creates its topic of offsets, and kafkajs gives up after seconds. */
export const awaitCoordinator = (
  find: () => Promise<unknown>,
  { signal, onRetry }: { readonly signal: AbortSignal; readonly onRetry: (error: unknown) => void },
): Promise<unknown> =>
  retry(find, {
    signal,
    initialMs: 500,
    maxMs: 5_000,
    deadlineMs: START_DEADLINE_MS,
    retryable: (error) => mayPass(error) || (error instanceof Error && error.name === NOT_FOUND),
    onRetry,
  });
