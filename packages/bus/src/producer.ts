import { type Logger, retry } from "@conversation-export/runtime";
import kafkajs, {
  type ICustomPartitioner,
  type IHeaders,
  type Message,
  type PartitionMetadata,
  type ProducerRecord,
  type RecordMetadata,
} from "kafkajs";
import { type Connection, connectTo, createKafka, METADATA_MAX_AGE_MS, RETRY } from "./kafkajs/connection.ts";
import { busError, mayPass } from "./kafkajs/errors.ts";
import type { BusHeaders } from "./message.ts";

/** `timestamp`: ms. */
export type OutgoingMessage = {
  key: Buffer | string | null;
  value: Buffer | string | null;
  headers?: BusHeaders;
  partition?: number;
  timestamp?: number;
};

type ProducerDeps = Connection & {
  compression?: "none" | "gzip" | "zstd";
};

export type Producer = {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Waits without limit until all in-sync replicas have all; throws `produce`: some may be written. */
  send(topic: string, messages: readonly OutgoingMessage[]): Promise<void>;
};

const { CompressionTypes } = kafkajs;
const COMPRESSION = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  zstd: CompressionTypes.ZSTD,
};

/** Brokers reject batches over 1 MiB. */
const MAX_REQUEST_BYTES = 900_000;
const SAME_LINE_MS = 30_000;
const LOOK_MS = 2_000;
/** Bytes of other fields, at most. */
const RECORD_OVERHEAD = 64;

const bytesOf = (part: Buffer | string | null | undefined): number =>
  typeof part === "string" ? Buffer.byteLength(part) : (part?.length ?? 0);

const sizeOf = (message: OutgoingMessage): number => {
  let size = RECORD_OVERHEAD + bytesOf(message.key) + bytesOf(message.value);
  for (const [name, value] of Object.entries(message.headers ?? {})) {
    for (const part of Array.isArray(value) ? value : [value]) size += name.length + 8 + bytesOf(part);
  }
  return size;
};

export const splitByBytes = (
  messages: readonly OutgoingMessage[],
  maxBytes: number,
): (readonly OutgoingMessage[])[] => {
  const runs: OutgoingMessage[][] = [];
  let run: OutgoingMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    const size = sizeOf(message);
    if (run.length > 0 && bytes + size > maxBytes) {
      runs.push(run);
      run = [];
      bytes = 0;
    }
    run.push(message);
    bytes += size;
  }
  if (run.length > 0) runs.push(run);
  return runs;
};

/** One partition each: a failure takes back the sequence numbers of its whole request, written or not. */
export const splitByPartition = (
  messages: readonly OutgoingMessage[],
  maxBytes: number,
): (readonly OutgoingMessage[])[] =>
  [...Map.groupBy(messages, ({ partition }) => partition).values()].flatMap((run) =>
    splitByBytes(run, maxBytes),
  );

/** kafkajs writes no null. */
export const toHeaders = (headers: BusHeaders): IHeaders =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, header]) => {
      if (header === null || header === undefined) return [];
      return [[name, Array.isArray(header) ? header.map((one) => one ?? "") : header]];
    }),
  );

const toMessage = ({ key, value, headers, partition, timestamp }: OutgoingMessage): Message => ({
  key,
  value,
  ...(headers !== undefined && { headers: toHeaders(headers) }),
  ...(partition !== undefined && { partition }),
  ...(timestamp !== undefined && { timestamp: String(timestamp) }),
});

/** kafkajs reuses a failed request's sequence number, so one in between would count as its copy. */
export const createSending = <Request extends { readonly topic: string }>(deps: {
  readonly send: (request: Request) => Promise<unknown>;
  /** Since the last call. */
  readonly failure: () => string | undefined;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly pauseMs?: number;
  readonly lookMs?: number;
}): ((requests: readonly Request[]) => Promise<void>) => {
  const { send, signal, log, pauseMs = 500 } = deps;
  let before: Promise<void> = Promise.resolve();
  let last = { line: "", at: 0 };
  const noteFailure = (topic: string, error: unknown): void => {
    const line = `${topic} ${String(error)}`;
    const at = performance.now();
    if (line === last.line && at - last.at < SAME_LINE_MS) return;
    last = { line, at };
    log.warn({ topic, error: String(error) }, "writing to the topic failed, retrying");
  };
  const sendAll = async (requests: readonly Request[]): Promise<void> => {
    for (const request of requests) {
      const { topic } = request;
      deps.failure();
      // kafkajs repeats for ever what a missing topic rejects.
      const look = setInterval(() => {
        const error = deps.failure();
        if (error !== undefined) noteFailure(topic, error);
      }, deps.lookMs ?? LOOK_MS);
      // kafkajs' endless retries end when the retries within them do.
      await retry(() => send(request), {
        signal,
        initialMs: pauseMs,
        retryable: mayPass,
        onRetry: (error) => noteFailure(topic, error),
      }).finally(() => clearInterval(look));
    }
  };
  return (requests) => {
    const sent = before.then(() => sendAll(requests));
    before = sent.catch(() => {});
    return sent;
  };
};

/** Only kafkajs knows a topic's partitions. */
const createPartitions = () => {
  const choose = kafkajs.Partitioners.DefaultPartitioner();
  const latest = new Map<string, PartitionMetadata[]>();
  const createPartitioner: ICustomPartitioner = () => (choice) => {
    latest.set(choice.topic, choice.partitionMetadata);
    // kafkajs asks again at each attempt.
    return (choice.message.partition ??= choose(choice));
  };
  return {
    createPartitioner,
    /** As of the last request to the topic. */
    partitionOf: (topic: string, message: OutgoingMessage): number =>
      choose({ topic, partitionMetadata: latest.get(topic) ?? [], message: toMessage(message) }),
  };
};

/** kafkajs silently leaves out a partition whose leader moved. */
const createAnsweredSend =
  (send: (request: ProducerRecord) => Promise<RecordMetadata[]>) =>
  async (request: ProducerRecord): Promise<void> => {
    for (let left = request.messages; left.length > 0; ) {
      const answered = new Set(
        (await send({ ...request, messages: left })).map(({ partition }) => partition),
      );
      left = left.filter(({ partition = -1 }) => !answered.has(partition));
    }
  };

/** After a broker's long absence parts may be there twice. */
export const createProducer = (deps: ProducerDeps): Producer => {
  const { log } = deps;
  const compression = COMPRESSION[deps.compression ?? "none"];
  const abort = new AbortController();
  let failure: string | undefined;
  const onFailure = (error: string): void => {
    failure = error;
  };
  const { createPartitioner, partitionOf } = createPartitions();
  const producer = createKafka(deps, { onFailure }).producer({
    createPartitioner,
    allowAutoTopicCreation: false,
    idempotent: true,
    maxInFlightRequests: 5,
    metadataMaxAge: METADATA_MAX_AGE_MS,
    retry: { ...RETRY, retries: Number.MAX_SAFE_INTEGER },
  });
  const sendAll = createSending({
    send: createAnsweredSend((request) => producer.send(request)),
    failure: () => {
      const error = failure;
      failure = undefined;
      return error;
    },
    signal: abort.signal,
    log,
  });
  const sendRuns = (topic: string, messages: readonly OutgoingMessage[]): Promise<void> => {
    const runs = splitByPartition(messages, MAX_REQUEST_BYTES);
    return sendAll(runs.map((run) => ({ topic, acks: -1, compression, messages: run.map(toMessage) })));
  };
  return {
    start: () => connectTo(producer, "producer", abort.signal, log),
    stop: async () => {
      abort.abort();
      await producer.disconnect();
    },
    send: async (topic, messages) => {
      const [first, ...others] = messages.filter(({ partition }) => partition === undefined);
      const placed = messages.filter(({ partition }) => partition !== undefined);
      try {
        if (first !== undefined) await sendRuns(topic, [first]);
        for (const message of others) placed.push({ ...message, partition: partitionOf(topic, message) });
        await sendRuns(topic, placed);
      } catch (error) {
        throw busError("produce", `cannot write to ${topic}`, error);
      }
    },
  };
};
