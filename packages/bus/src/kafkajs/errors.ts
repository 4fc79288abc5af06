import { ServiceError, tlsTroubleOf } from "@conversation-export/runtime";
import kafkajs from "kafkajs";

/** kafkajs calls them final, but a lock is held while a broker does not answer. */
const PASSING: ReadonlySet<string> = new Set(["KafkaJSNumberOfRetriesExceeded", "KafkaJSLockTimeout"]);

export const mayPass = (error: unknown): boolean => {
  // kafkajs wraps the last error into a final one.
  for (let current = error; current instanceof kafkajs.KafkaJSError; current = current.cause) {
    if (PASSING.has(current.name) || current.retriable) return true;
  }
  return false;
};

/** Controller or brokers may not be registered yet. */
export const mayBeCreatedLater = (error: unknown): boolean => {
  if (!(error instanceof kafkajs.KafkaJSAggregateError)) return false;
  const open = error.errors.filter((one) => protocolErrorType(one) !== "TOPIC_ALREADY_EXISTS");
  return open.every((one) => protocolErrorType(one) === "INVALID_REPLICATION_FACTOR" || mayPass(one));
};

/** Also when kafkajs has wrapped it. */
export const protocolErrorType = (error: unknown): string | undefined => {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ("type" in current && typeof current.type === "string") return current.type;
  }
  return undefined;
};

const TOO_LARGE: ReadonlySet<string> = new Set(["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]);

/** Every other refusal of messages can be mended. */
export const isTooLarge = (error: unknown): boolean => TOO_LARGE.has(protocolErrorType(error) ?? "");

export const busError = (code: string, message: string, cause: unknown): ServiceError =>
  new ServiceError(code, `${message}: ${cause instanceof Error ? cause.message : String(cause)}`, {
    retryable: mayPass(cause),
    cause,
  });

const causesOf = (error: unknown): Error[] =>
  error instanceof Error ? [error, ...causesOf(error.cause)] : [];

/** kafkajs takes a failed handshake for trouble of the network. */
const isTlsTrouble = (error: unknown): boolean =>
  causesOf(error).some((cause) => "code" in cause && tlsTroubleOf(cause.code) !== undefined);

export const mayPassAtStart = (error: unknown): boolean => mayPass(error) && !isTlsTrouble(error);

/** `bus_credentials`: rejected; `bus_token`: none; `bus_tls`: no common TLS; undefined: another error. */
export const loginError = (name: string, error: unknown): ServiceError | undefined => {
  const token = causesOf(error).find((cause) => cause instanceof ServiceError && cause.code === "bus_token");
  if (token !== undefined) {
    const message = `no token for the login of the ${name}: ${token.message}`;
    return new ServiceError("bus_token", message, { cause: error });
  }
  const refused = protocolErrorType(error)?.includes("SASL") === true;
  if (refused || causesOf(error).some(({ name: kind }) => kind === "KafkaJSSASLAuthenticationError")) {
    return busError("bus_credentials", `Kafka refuses the credentials of the ${name}`, error);
  }
  if (isTlsTrouble(error)) {
    const message = `no TLS with Kafka for the ${name}: ${error instanceof Error ? error.message : String(error)}`;
    return new ServiceError("bus_tls", message, { cause: error });
  }
  return undefined;
};

export const startError = (name: string, error: unknown): ServiceError =>
  loginError(name, error) ?? busError("bus_start", `the ${name} cannot start`, error);
