import { retry } from "@conversation-export/runtime";
import { protocolErrorType } from "./errors.ts";

const DEADLINE_MS = 20_000;

/** The coordinator of the group is starting, or another broker has become it. */
const PASSING: ReadonlySet<string> = new Set([
  "GROUP_LOAD_IN_PROGRESS",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR_FOR_GROUP",
]);

/**
 * Asks the coordinator of a group, again for up to 20 seconds while it is starting or moving: kafkajs repeats
 * such requests for members of the group only. `question` must look the coordinator up each time.
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
