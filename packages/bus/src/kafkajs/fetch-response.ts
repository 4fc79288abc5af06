import { ServiceError } from "@conversation-export/runtime";
import { type AbortedTransaction, committedBatches } from "../records/committed-batches.ts";
import { toOffset } from "../records/offset.ts";
import { readBatches } from "../records/record-batch.ts";
import type { FetchedBatch } from "../records/record-slices.ts";
import { internals } from "./internals.ts";
import { createErrorFromCode, type Decoder, isOfPartition, KafkaDecoder } from "./own-request.ts";

/** kafkajs passes on only messages. */
export type PassedBatch = FetchedBatch & { readonly offset: string };
/** kafkajs would drop what the other partitions have. */
export type PassedError = { readonly offset: string; readonly error: Error };
export type Passed = readonly PassedBatch[] | readonly [PassedError];

export type FetchedPartition = {
  readonly partition: number;
  readonly errorCode: number;
  readonly highWatermark: string;
  readonly lastStableOffset: string;
  /** Read here, so that kafkajs filters nothing. */
  readonly abortedTransactions: readonly [];
  readonly preferredReadReplica?: number;
  readonly messages: Passed;
};
type FetchedTopic = { readonly topicName: string; readonly partitions: readonly FetchedPartition[] };

type Protocol = { readonly response: { decode(raw: Buffer): Promise<unknown> } };
type FetchRequests = { protocol: (options: { version: number }) => (request: object) => Protocol };

/** Above every offset, so that kafkajs skips no batch. */
const NO_OFFSET = "9223372036854775807";
/** The first version with transactions and batches. */
const FIRST_VERSION = 4;

const readAborted = (decoder: Decoder): AbortedTransaction => ({
  producerId: BigInt(decoder.readInt64().toString()),
  firstOffset: toOffset(decoder.readInt64().toString()),
});

const passError = (error: Error): readonly [PassedError] => [{ offset: NO_OFFSET, error }];

export const isPassedError = (messages: Passed): messages is readonly [PassedError] =>
  messages[0] !== undefined && "error" in messages[0];

const passBatchesOf = (
  recordSet: Buffer,
  aborted: readonly AbortedTransaction[],
  highWatermark: string,
): Passed => {
  try {
    const batches = readBatches(recordSet, toOffset(highWatermark));
    const committed = committedBatches(batches, aborted);
    return batches.map((batch) => ({ offset: NO_OFFSET, batch, isCommitted: committed.has(batch) }));
  } catch (error) {
    if (error instanceof ServiceError) return passError(error);
    throw error;
  }
};

const partitionReader =
  (version: number) =>
  (decoder: Decoder): FetchedPartition => {
    const partition = decoder.readInt32();
    const errorCode = decoder.readInt16();
    const highWatermark = decoder.readInt64().toString();
    const lastStableOffset = decoder.readInt64().toString();
    if (version >= 5) decoder.readInt64();
    const aborted = decoder.readArray(readAborted);
    const replica = version >= 11 ? { preferredReadReplica: decoder.readInt32() } : {};
    const size = decoder.readInt32();
    const recordSet = size > 0 ? decoder.readBytes(size) : Buffer.alloc(0);
    const isPassed = isOfPartition(errorCode);
    const messages = isPassed
      ? passError(createErrorFromCode(errorCode))
      : passBatchesOf(recordSet, aborted, highWatermark);
    return {
      partition,
      errorCode: isPassed ? 0 : errorCode,
      highWatermark,
      lastStableOffset,
      abortedTransactions: [],
      ...replica,
      messages,
    };
  };

const readResponse = (decoder: Decoder, version: number): object => {
  const throttleMs = decoder.readInt32();
  const session = version >= 7 ? { errorCode: decoder.readInt16(), sessionId: decoder.readInt32() } : {};
  const responses = decoder.readArray(
    (topic): FetchedTopic => ({
      topicName: topic.readString(),
      partitions: topic.readArray(partitionReader(version)),
    }),
  );
  // From version 8 on the broker has not waited itself.
  return version >= 8
    ? { throttleTime: 0, clientSideThrottleTime: throttleMs, ...session, responses }
    : { throttleTime: throttleMs, ...session, responses };
};

/**
 * kafkajs' parser unpacks whole responses, fails above 125,000 records a batch and for one partition's error, and
 * passes some aborted messages.
 */
export const passBatches = (): void => {
  const requests = internals("protocol/requests/fetch/index") as FetchRequests;
  const { protocol } = requests;
  requests.protocol = ({ version }) => {
    if (version < FIRST_VERSION) throw new Error("brokers before Kafka 0.11 cannot be read");
    const create = protocol({ version });
    return (request) => {
      const made = create(request);
      const decode = (raw: Buffer): Promise<object> =>
        Promise.resolve().then(() => readResponse(new KafkaDecoder(raw), version));
      return { ...made, response: { ...made.response, decode } };
    };
  };
};
