/** The levels of pino that a line of kafkajs may get. */
export type BusLogLevel = "debug" | "warn" | "error";

const LOST_OFFSET = /^Offset out of range, resetting/;

/** Nobody retries these: lost records, refused credentials, and bugs in our own callbacks. */
const ERROR =
  /^Offset out of range, resetting|^Failed to execute listener|^Error when calling|^Caught error|authenticat|authoriz|SASL/i;

/** The normal life of a group, at every roll-out. */
const GROUP_LIFE =
  /rebalanc|rejoin|re-joining|coordinator|generation|not aware of this member|concurrent transaction/i;

/** True for the line with which kafkajs says that it starts a partition again from its first offset. */
export const isOffsetOutOfRange = (message: string): boolean => LOST_OFFSET.test(message);

/** kafkajs writes ERROR for trouble that it retries. Here an error is what nobody retries; the rest warns. */
export const levelOf = (label: string, message: string, error: unknown): BusLogLevel => {
  if (label !== "ERROR" && label !== "WARN") return "debug";
  const text = typeof error === "string" ? `${message} ${error}` : message;
  if (ERROR.test(text)) return label === "ERROR" ? "error" : "warn";
  return GROUP_LIFE.test(text) ? "debug" : "warn";
};
