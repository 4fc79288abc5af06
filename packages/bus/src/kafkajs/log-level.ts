type BusLogLevel = "debug" | "warn" | "error";

const LOST_OFFSET = /^Offset out of range, resetting/;

/** Trouble that is not retried: lost records, rejected credentials, bugs in our callbacks. */
const ERROR =
  /^Offset out of range, resetting|^Failed to execute listener|^Error when calling|^Caught error|authenticat|authoriz|SASL/i;

const GROUP_LIFE =
  /rebalanc|rejoin|re-joining|coordinator|generation|not aware of this member|concurrent transaction/i;

export const isOffsetOutOfRange = (message: string): boolean => LOST_OFFSET.test(message);

const MISSING_TOPIC = /does not host this topic-partition/;

/** kafkajs also writes ERROR for what it retries. */
export const levelOf = (label: string, message: string, error: unknown): BusLogLevel => {
  if (label !== "ERROR" && label !== "WARN") return "debug";
  const text = typeof error === "string" ? `${message} ${error}` : message;
  if (ERROR.test(text)) return label === "ERROR" ? "error" : "warn";
  return GROUP_LIFE.test(text) || MISSING_TOPIC.test(text) ? "debug" : "warn";
};
