/** The levels that a line of kafkajs may get. */
export type BusLogLevel = "debug" | "warn" | "error";

const LOST_OFFSET = /^Offset out of range, resetting/;

/** Lines about trouble that is not retried: lost records, refused credentials, bugs in our own callbacks. */
const ERROR =
  /^Offset out of range, resetting|^Failed to execute listener|^Error when calling|^Caught error|authenticat|authoriz|SASL/i;

/** Lines about the normal life of a group, as at every roll-out. */
const GROUP_LIFE =
  /rebalanc|rejoin|re-joining|coordinator|generation|not aware of this member|concurrent transaction/i;

/** True for the line that reports a partition started again from its first offset. */
export const isOffsetOutOfRange = (message: string): boolean => LOST_OFFSET.test(message);

/** Answered to everyone who asks for a missing topic; the caller says which one. */
const MISSING_TOPIC = /does not host this topic-partition/;

/**
 * kafkajs writes ERROR also for trouble that it retries; here only trouble that is not retried is an error.
 */
export const levelOf = (label: string, message: string, error: unknown): BusLogLevel => {
  if (label !== "ERROR" && label !== "WARN") return "debug";
  const text = typeof error === "string" ? `${message} ${error}` : message;
  if (ERROR.test(text)) return label === "ERROR" ? "error" : "warn";
  return GROUP_LIFE.test(text) || MISSING_TOPIC.test(text) ? "debug" : "warn";
};
