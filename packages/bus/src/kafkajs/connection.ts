import { type KafkaServers, type Logger, retry } from "@conversation-export/runtime";
import kafkajs, { type Kafka, type KafkaConfig, type LogEntry, type SASLOptions } from "kafkajs";
import { registerCodecs } from "./codecs.ts";
import { mayPassAtStart, startError } from "./errors.ts";
import { isOffsetOutOfRange, levelOf } from "./log-level.ts";
import type { TopicPartition } from "../message.ts";
import { isTokenLogin, tokensOf } from "../login/shared-tokens.ts";
import { patchKafkajs } from "./patches.ts";
import { tokenMechanism } from "./token-login.ts";

/** `clientId`: for the brokers' logs and quotas. */
export type Connection = KafkaServers & { clientId: string; log: Logger };

/** Events that kafkajs reports only in its log. */
type LogMonitor = {
  onLine?: () => void;
  onOffsetOutOfRange?: (where: TopicPartition) => void;
  onFailure?: (error: string) => void;
};

/** All values, because NODE_ENV=test changes kafkajs' defaults. */
export const RETRY = { initialRetryTime: 200, maxRetryTime: 3000, retries: 8, factor: 0.2, multiplier: 2 };

/** kafkajs refreshes metadata when a broker refuses, not when it hangs. */
export const METADATA_MAX_AGE_MS = 10_000;

const saslOf = ({ sasl, ssl, log }: Connection): Pick<KafkaConfig, "sasl"> => {
  if (sasl === undefined) return {};
  // kafkajs writes into this object.
  if (!isTokenLogin(sasl)) return { sasl: { ...sasl } as SASLOptions };
  const extensions = sasl.mechanism === "oauthbearer" ? sasl.extensions : {};
  return { sasl: tokenMechanism(tokensOf(sasl, ssl?.ca), extensions, log) };
};

/** Batches come unparsed; patches kafkajs for the whole process. */
export const createKafka = (connection: Connection, watch: LogMonitor = {}): Kafka => {
  registerCodecs();
  patchKafkajs();
  const { brokers, clientId, ssl, log } = connection;

  const write = ({ namespace, label, log: entry }: LogEntry): void => {
    const { message, timestamp: _, logger: __, stack, error, ...fields } = entry;
    const level = levelOf(label, message, error);
    watch.onLine?.();
    if (error !== undefined) watch.onFailure?.(String(error));
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
    ...saslOf(connection),
    connectionTimeout: 5000,
    requestTimeout: 30_000,
    retry: RETRY,
    logLevel: kafkajs.logLevel.INFO,
    logCreator: () => write,
  });
};

/** Throws `bus_start`, `bus_credentials`, `bus_token`, `bus_tls` when waiting cannot help. */
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
