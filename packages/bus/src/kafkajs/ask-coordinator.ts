import { retry } from "@conversation-export/runtime";
import { mayPass, protocolErrorType } from "./errors.ts";

const DEADLINE_MS = 20_000;
const START_DEADLINE_MS = 120_000;

const NOT_FOUND = "KafkaJSGroupCoordinatorNotFound";

/** The coordinator of the group is starting, or another broker has become it. */
const PASSING: ReadonlySet<string> = new Set([
  "GROUP_LOAD_IN_PROGRESS",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR_FOR_GROUP",
]);

/**
 * Asks the coordinator of a group, up to 20 seconds while it starts or moves. `question` must look the
 * coordinator up each time.
 * @throws the last error of `question`, and the signal's reason
 */
export const askCoordinator = <T>(question: () => Promise<T>, signal: AbortSignal): Promise<T> =>
  retry(question, {
    signal,
    initialMs: 200,
    maxMs: 2_000,
    deadlineMs: DEADLINE_MS,
    retryable: (error) => PASSING.has(protocolErrorType(error) ?? ""),
  });

/**
 * Waits up to two minutes for a coordinator: a new cluster creates its topic of offsets first, and kafkajs
 * gives up after seconds.
 * @throws the last error of `find`, and the signal's reason
 */
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
