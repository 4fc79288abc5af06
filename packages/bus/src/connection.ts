import {
  type KafkaServers,
  type Logger,
  retry,
  ServiceError,
  tlsTroubleOf,
} from "@conversation-export/runtime";
import kafkajs, { type Kafka, type LogEntry, type SASLOptions } from "kafkajs";
import { registerCodecs } from "./codecs.ts";
import { readHeadersInLinearTime } from "./headers.ts";
import { isOffsetOutOfRange, levelOf } from "./log-level.ts";
import type { TopicPartition } from "./message.ts";

/** How to reach the brokers. `clientId` names this process in the brokers' logs and quotas. */
export type Connection = KafkaServers & { clientId: string; log: Logger };

/** What kafkajs says only in its log. */
export type LogWatch = {
  onLine?: () => void;
  onOffsetOutOfRange?: (where: TopicPartition) => void;
};

registerCodecs();
readHeadersInLinearTime();

/** Short, so that a broker that comes back is seen soon. All given: under NODE_ENV=test kafkajs has other defaults. */
export const RETRY = { initialRetryTime: 200, maxRetryTime: 3000, retries: 8, factor: 0.2, multiplier: 2 };

/** A kafkajs client that logs through `log` at levels that mean what they say. */
export const createKafka = (connection: Connection, watch: LogWatch = {}): Kafka => {
  const { brokers, clientId, ssl, sasl, log } = connection;

  const write = ({ namespace, label, log: entry }: LogEntry): void => {
    const { message, timestamp: _, logger: __, stack, error, ...fields } = entry;
    const level = levelOf(label, message, error);
    watch.onLine?.();
    if (isOffsetOutOfRange(message)) {
      watch.onOffsetOutOfRange?.({ topic: String(entry["topic"]), partition: Number(entry["partition"]) });
    }
    if (!log.isLevelEnabled(level)) return;
    log[level](
      {
        kafkajs: namespace,
        ...fields,
        ...(error !== undefined && { error: String(error) }),
        ...(level === "error" && { stack }),
      },
      message,
    );
  };

  return new kafkajs.Kafka({
    brokers: [...brokers],
    clientId,
    ...(ssl !== undefined && { ssl }),
    // A copy, for kafkajs notes things in it.
    ...(sasl !== undefined && { sasl: { ...sasl } as SASLOptions }),
    connectionTimeout: 5000,
    requestTimeout: 30_000,
    retry: RETRY,
    logLevel: kafkajs.logLevel.INFO,
    logCreator: () => write,
  });
};

/** Names of errors that kafkajs calls final and that pass: a lock is held while a broker does not answer. */
const PASSING: ReadonlySet<string> = new Set(["KafkaJSNumberOfRetriesExceeded", "KafkaJSLockTimeout"]);

/** True if a later attempt may succeed: away brokers, elections, missing topics; not refused credentials. */
export const mayPass = (error: unknown): boolean => {
  // kafkajs calls it final when its own retries within a retry are used up; the cause tells what it was.
  for (let current = error; current instanceof kafkajs.KafkaJSError; current = current.cause) {
    if (PASSING.has(current.name) || current.retriable) return true;
  }
  return false;
};

/** The type of a protocol error (`ILLEGAL_GENERATION`, …), also when kafkajs has wrapped it. */
export const protocolErrorType = (error: unknown): string | undefined => {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ("type" in current && typeof current.type === "string") return current.type;
  }
  return undefined;
};

/** Trouble of kafkajs in the words of the project. */
export const busError = (code: string, message: string, cause: unknown): ServiceError =>
  new ServiceError(code, `${message}: ${cause instanceof Error ? cause.message : String(cause)}`, {
    retryable: mayPass(cause),
    cause,
  });

const causesOf = (error: unknown): Error[] =>
  error instanceof Error ? [error, ...causesOf(error.cause)] : [];

/** TLS that does not come about: kafkajs takes it for trouble of the network. */
const isTlsTrouble = (error: unknown): boolean =>
  causesOf(error).some((cause) => "code" in cause && tlsTroubleOf(cause.code) !== undefined);

/** As `mayPass`, while the first connection is being made. */
export const mayPassAtStart = (error: unknown): boolean => mayPass(error) && !isTlsTrouble(error);

/**
 * What kept a client from starting: `bus_credentials` when the brokers refuse user or password, `bus_tls` when there is
 * no TLS that both sides accept, else `bus_start`.
 */
export const startError = (name: string, error: unknown): ServiceError => {
  const refused = protocolErrorType(error)?.includes("SASL") === true;
  if (refused || causesOf(error).some(({ name: kind }) => kind === "KafkaJSSASLAuthenticationError")) {
    return busError("bus_credentials", `Kafka refuses the credentials of the ${name}`, error);
  }
  if (isTlsTrouble(error)) {
    const message = `no TLS with Kafka for the ${name}: ${error instanceof Error ? error.message : String(error)}`;
    return new ServiceError("bus_tls", message, { cause: error });
  }
  return busError("bus_start", `the ${name} cannot start`, error);
};

/**
 * Connects, waiting for the brokers as long as it takes. Throws ServiceError `bus_start`, `bus_credentials` or `bus_tls`
 * for what cannot pass.
 */
export const connectTo = async (
  client: { connect(): Promise<void> },
  name: string,
  signal: AbortSignal,
  log: Logger,
): Promise<void> => {
  try {
    await retry(() => client.connect(), {
      signal,
      initialMs: 500,
      retryable: mayPassAtStart,
      onRetry: (error) => log.warn({ error: String(error) }, "waiting for Kafka"),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw startError(name, error);
  }
};
