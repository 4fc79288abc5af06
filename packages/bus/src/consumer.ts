import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type Metrics, retry } from "@conversation-export/runtime";
import kafkajs, { type EachBatchPayload, type OffsetsByTopicPartition } from "kafkajs";
import {
  busError,
  type Connection,
  createKafka,
  mayPass,
  mayPassAtStart,
  protocolErrorType,
  RETRY,
  startError,
} from "./connection.ts";
import { createJoinGate } from "./join-gate.ts";
import {
  type BusMessage,
  type PartitionOffset,
  type TopicPartition,
  toBusMessage,
  toOffset,
} from "./message.ts";
import { createSliceSizer } from "./slices.ts";

/**
 * Some messages of one partition, in order. `nextOffset` is what to commit when all of them are settled; it lies
 * past control records and aborted messages, and may come with no messages at all. `highWatermark` is the end
 * of the partition when it was fetched.
 */
export type MessageSlice = {
  epoch: number;
  topic: string;
  partition: number;
  messages: readonly BusMessage[];
  nextOffset: number;
  highWatermark: number;
};

/**
 * What became of a slice: all taken; all taken and the partition paused; or the first `processed` taken and the
 * partition paused, the rest comes again after `resume`.
 */
export type Taken = "continue" | "pause" | { processed: number; pause: true };

/** Bytes and milliseconds of kafkajs' fetch requests. */
export type FetchLimits = {
  maxBytesPerPartition: number;
  maxBytes: number;
  minBytes: number;
  maxWaitMs: number;
};

export type ConsumerDeps = Connection & {
  groupId: string;
  topics: readonly string[];
  /** Without a heartbeat for so long the group goes on without this member. */
  sessionTimeoutMs?: number;
  heartbeatIntervalMs?: number;
  /** How long a rejoin waits for `onRebalancing`; less than the session. */
  drainMs?: number;
  fetch?: Partial<FetchLimits>;
  /** How long one call of `onMessages` may hold the event loop; slices are cut to fit. */
  sliceMs?: number;
  metrics?: Metrics;
  /** Synchronous. A throw is a bug and ends in `onCrash`. */
  onMessages(slice: MessageSlice): Taken;
  /** A new epoch: what the old one has not committed comes again, and nothing is paused. */
  onAssigned(assignment: { epoch: number; partitions: readonly TopicPartition[] }): void;
  /** Before every rejoin: finish and commit what is in flight. The join waits; no messages come meanwhile. */
  onRebalancing(): void | Promise<void>;
  /** The consumer is dead and will not come back. */
  onCrash(error: unknown): void;
};

export type Consumer = {
  /** Waits for brokers and topics as long as it takes; rejects on what cannot pass and after `stop`. */
  start(): Promise<void>;
  /** Leaves the group. Drain and commit before, with everything paused. */
  stop(): Promise<void>;
  /**
   * Commits while `epoch` is the current one. `fenced`: it is not, or the group no longer takes commits of this
   * member; the offsets come again. Retries what may pass; throws ServiceError `commit` otherwise.
   */
  commit(epoch: number, offsets: readonly PartitionOffset[]): Promise<"committed" | "fenced">;
  pause(partitions: readonly TopicPartition[]): void;
  resume(partitions: readonly TopicPartition[]): void;
  isPaused(where: TopicPartition): boolean;
  pausedCount(): number;
  assigned(): readonly TopicPartition[];
  /** A member of the group, perhaps without partitions. */
  isJoined(): boolean;
  /** Date.now() of the loop's last sign of life. Allow for `drainMs` and the library's pauses, 30 s. */
  lastTick(): number;
};

/** `draining`: the old generation still commits. `joining`: nobody commits. */
type Phase = "idle" | "joined" | "draining" | "joining" | "stopped";

const FETCH: FetchLimits = {
  maxBytesPerPartition: 4 * 1024 * 1024,
  maxBytes: 32 * 1024 * 1024,
  minBytes: 64 * 1024,
  maxWaitMs: 250,
};

/** The member has lost its generation, or will: only a rejoin helps. */
const FENCED = new Set([
  "ILLEGAL_GENERATION",
  "UNKNOWN_MEMBER_ID",
  "REBALANCE_IN_PROGRESS",
  "FENCED_INSTANCE_ID",
  "NOT_COORDINATOR_FOR_GROUP",
]);

const keyOf = ({ topic, partition }: TopicPartition): string => `${partition} ${topic}`;

const byTopic = (partitions: readonly TopicPartition[]) =>
  Array.from(
    Map.groupBy(partitions, ({ topic }) => topic),
    ([topic, entries]) => ({ topic, partitions: entries.map(({ partition }) => partition) }),
  );

const toCommitRequest = (offsets: readonly PartitionOffset[]): OffsetsByTopicPartition => ({
  topics: Array.from(
    Map.groupBy(offsets, ({ topic }) => topic),
    ([topic, entries]) => ({
      topic,
      partitions: entries.map(({ partition, offset }) => ({ partition, offset: String(offset) })),
    }),
  ),
});

/** kafkajs takes an error of this type from eachBatch as the order to rejoin. */
const rejoinError = (): Error =>
  Object.assign(new kafkajs.KafkaJSError("the last join did not finish", { retriable: false }), {
    type: "REBALANCE_IN_PROGRESS",
  });

/**
 * A member of a consumer group. It never waits for the owner's work: messages are handed over in slices and
 * taken or refused at once, offsets are committed later by `commit`.
 *
 * What holds, by kafkajs' source and by the integration test with two members: a join makes a new offset manager
 * with empty positions, so each partition starts again at its committed offset and everything uncommitted is
 * delivered again under the new epoch.
 */
export const createConsumer = (deps: ConsumerDeps): Consumer => {
  const { log, groupId, topics, metrics } = deps;
  const sessionTimeoutMs = deps.sessionTimeoutMs ?? 30_000;
  const drainMs = deps.drainMs ?? Math.floor(sessionTimeoutMs / 2);
  const limits = { ...FETCH, ...deps.fetch };
  const sizer = createSliceSizer(deps.sliceMs ?? 20);
  const abort = new AbortController();

  const outOfRange = metrics?.counter(
    "bus_offset_out_of_range_total",
    "Partitions started again from their first offset because the committed one was gone: records were lost.",
    ["topic"],
  );
  const joins = metrics?.counter("bus_joins_total", "Assignments received from the consumer group.");
  const restarts = metrics?.counter("bus_restarts_total", "Consumer restarts after retries ran out.");
  const commits = metrics?.counter("bus_commits_total", "Commits by result.", ["result"]);

  let phase: Phase = "idle";
  let epoch = 0;
  let tick = Date.now();
  let assignment: readonly TopicPartition[] = [];
  let crashed = false;
  let running: Promise<void> | undefined;
  let lastCommit: Promise<unknown> = Promise.resolve();
  // kafkajs' other commit retries on its own, and a retry after a rejoin would carry the new generation.
  let sendCommit: ((request: OffsetsByTopicPartition) => Promise<void>) | undefined;
  const paused = new Map<string, TopicPartition>();

  const crash = (error: unknown): void => {
    if (crashed || phase === "stopped") return;
    crashed = true;
    deps.onCrash(error);
  };

  const drain = async (): Promise<void> => {
    const late = new AbortController();
    const deadline = sleep(drainMs, "late" as const, { signal: late.signal }).catch(() => "done" as const);
    const drained = Promise.resolve()
      .then(() => deps.onRebalancing())
      .then(() => "done" as const);
    try {
      if ((await Promise.race([drained, deadline])) === "late") {
        log.warn({ epoch, drainMs }, "drain took longer than the rejoin can wait");
        drained.catch(crash);
      }
    } catch (error) {
      crash(error);
    } finally {
      late.abort();
    }
  };

  const beforeJoin = async (): Promise<void> => {
    if (phase === "joined") {
      phase = "draining";
      log.info({ groupId, epoch }, "rebalancing");
      await drain();
    }
    if (phase === "stopped") throw new kafkajs.KafkaJSNonRetriableError("the consumer is stopped");
    // Drained first, fenced second: the other order throws finished work away.
    phase = "joining";
  };

  const gate = createJoinGate({ groupId, beforeJoin });
  const kafka = createKafka(deps, {
    onLine: () => {
      if (phase !== "joined") tick = Date.now();
    },
    onOffsetOutOfRange: ({ topic }) => outOfRange?.inc({ topic }),
  });
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: deps.heartbeatIntervalMs ?? Math.floor(sessionTimeoutMs / 10),
    rebalanceTimeout: Math.max(60_000, 2 * drainMs),
    maxBytesPerPartition: limits.maxBytesPerPartition,
    maxBytes: limits.maxBytes,
    minBytes: limits.minBytes,
    maxWaitTimeInMs: limits.maxWaitMs,
    allowAutoTopicCreation: false,
    partitionAssigners: [gate.assigner],
    retry: { ...RETRY, restartOnFailure: () => Promise.resolve(phase !== "stopped") },
  });

  const isPaused = (where: TopicPartition): boolean => paused.has(keyOf(where));

  const pause = (partitions: readonly TopicPartition[]): void => {
    if (phase !== "joined" || partitions.length === 0) return;
    for (const where of partitions) paused.set(keyOf(where), where);
    consumer.pause(byTopic(partitions));
  };

  const resume = (partitions: readonly TopicPartition[]): void => {
    // kafkajs keeps its pauses over a join: what is not resumed there now stays noted for the end of the join.
    if (phase !== "joined") return;
    const known = partitions.filter((where) => paused.delete(keyOf(where)));
    if (known.length > 0) consumer.resume(byTopic(known));
  };

  const handOver = (slice: MessageSlice): Taken => {
    try {
      const taken = deps.onMessages(slice);
      tick = Date.now();
      return taken;
    } catch (error) {
      // Not retriable: kafkajs ends with CRASH and does not restart.
      throw new kafkajs.KafkaJSNonRetriableError(error instanceof Error ? error : String(error));
    }
  };

  /**
   * True if the batch was fetched for the position that kafkajs holds now. It is not when another broker's
   * fetcher rejoined in the meantime; resolving its offsets would then skip what the new epoch must deliver.
   */
  const isCurrent = (payload: EachBatchPayload): boolean => {
    const { batch } = payload;
    const { topic, partition } = batch;
    // kafkajs gives the partition as a string here.
    const resolved = payload
      .uncommittedOffsets()
      .topics.find((entry) => entry.topic === topic)
      ?.partitions.find((entry) => String(entry.partition) === String(partition))?.offset;
    const position = Number(resolved ?? String(gate.committedOffset(topic, partition)));
    const { fetchedOffset } = batch as typeof batch & { fetchedOffset: string };
    return Math.max(0, position) === Number(fetchedOffset);
  };

  const eachBatch = async (payload: EachBatchPayload): Promise<void> => {
    const { batch } = payload;
    const { topic, partition, messages } = batch;
    if (phase === "joining") throw rejoinError();
    if (phase !== "joined" || !isCurrent(payload)) {
      await sleep(20);
      return;
    }
    const current = epoch;
    const highWatermark = toOffset(batch.highWatermark);
    const lastOffset = batch.lastOffset();
    sendCommit = (request) => payload.commitOffsetsIfNecessary(request);

    for (let from = 0; from < messages.length; ) {
      const startedAt = performance.now();
      const slice: BusMessage[] = [];
      const to = Math.min(messages.length, from + sizer.size());
      for (let index = from; index < to; index++) {
        const message = messages[index];
        if (message !== undefined) slice.push(toBusMessage(topic, partition, message));
      }
      const isLast = to === messages.length;
      const lastOfSlice = isLast ? lastOffset : String(slice.at(-1)?.offset);
      const nextOffset = toOffset(lastOfSlice) + 1;
      const taken = handOver({ epoch, topic, partition, messages: slice, nextOffset, highWatermark });
      sizer.took(slice.length, performance.now() - startedAt);

      if (typeof taken === "object" && taken.processed < slice.length) {
        const last = slice[taken.processed - 1];
        if (last !== undefined) payload.resolveOffset(String(last.offset));
        pause([{ topic, partition }]);
        return;
      }
      payload.resolveOffset(lastOfSlice);
      if (taken !== "continue") {
        pause([{ topic, partition }]);
        return;
      }
      from = to;
      await nextTurn();
      await payload.heartbeat();
      // pause(), a stop or a rejoin may have come in that turn; the rest is fetched again.
      if (phase !== "joined" || epoch !== current || isPaused({ topic, partition })) return;
    }
  };

  const { events } = consumer;
  const alive = (): void => {
    if (phase === "joined") tick = Date.now();
  };
  consumer.on(events.FETCH_START, alive);
  consumer.on(events.HEARTBEAT, alive);

  consumer.on(events.START_BATCH_PROCESS, ({ payload }) => {
    // kafkajs does not hand over a batch of nothing but control records; its end must be committed all the same.
    if (payload.batchSize > 0 || phase !== "joined") return;
    const { topic, partition } = payload;
    try {
      const taken = handOver({
        epoch,
        topic,
        partition,
        messages: [],
        nextOffset: toOffset(payload.lastOffset) + 1,
        highWatermark: toOffset(payload.highWatermark),
      });
      if (taken !== "continue") pause([{ topic, partition }]);
    } catch (error) {
      crash(error);
    }
  });

  consumer.on(events.GROUP_JOIN, ({ payload }) => {
    if (phase === "stopped") return;
    // The same object of kafkajs keeps its pauses over a join.
    if (paused.size > 0) consumer.resume(byTopic([...paused.values()]));
    paused.clear();
    sendCommit = undefined;
    epoch++;
    phase = "joined";
    tick = Date.now();
    assignment = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
      partitions.map((partition) => ({ topic, partition })),
    );
    joins?.inc();
    log.info(
      { groupId, epoch, partitions: assignment.map(({ topic, partition }) => `${topic}/${partition}`) },
      "joined",
    );
    try {
      deps.onAssigned({ epoch, partitions: assignment });
    } catch (error) {
      crash(error);
    }
  });

  consumer.on(events.CRASH, ({ payload }) => {
    tick = Date.now();
    if (!payload.restart) {
      crash(payload.error.cause ?? payload.error);
      return;
    }
    // kafkajs has left the group.
    restarts?.inc();
    log.warn({ groupId, error: payload.error.message }, "consumer restarts");
  });

  const mayCommit = (of: number): boolean => of === epoch && (phase === "joined" || phase === "draining");

  const commitNow = async (
    of: number,
    offsets: readonly PartitionOffset[],
  ): Promise<"committed" | "fenced"> => {
    const request = toCommitRequest(offsets);
    try {
      return await retry(
        async () => {
          // kafkajs puts the generation into the request in this turn: no join can come between check and use.
          if (!mayCommit(of)) return "fenced";
          if (sendCommit !== undefined) await sendCommit(request);
          else
            await consumer.commitOffsets(
              offsets.map((entry) => ({ ...entry, offset: String(entry.offset) })),
            );
          return "committed";
        },
        {
          signal: abort.signal,
          initialMs: 50,
          maxMs: 1000,
          retryable: (error) => mayPass(error) && !FENCED.has(protocolErrorType(error) ?? ""),
          onRetry: (error, attempt) => log.debug({ attempt, error: String(error) }, "commit again"),
        },
      );
    } catch (error) {
      if (!mayCommit(of) || FENCED.has(protocolErrorType(error) ?? "")) return "fenced";
      throw busError("commit", "commit failed", error);
    }
  };

  return {
    start: async () => {
      try {
        await retry(
          async () => {
            await consumer.connect();
            await consumer.subscribe({ topics: [...topics], fromBeginning: true });
          },
          {
            signal: abort.signal,
            initialMs: 500,
            retryable: mayPassAtStart,
            onRetry: (error) => {
              tick = Date.now();
              log.warn({ topics, error: String(error) }, "waiting for Kafka and its topics");
            },
          },
        );
      } catch (error) {
        abort.signal.throwIfAborted();
        throw startError("consumer", error);
      }
      running = consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch });
      await running;
    },
    stop: async () => {
      phase = "stopped";
      abort.abort();
      await consumer.disconnect();
      await running;
    },
    commit: (of, offsets) => {
      if (offsets.length === 0) return Promise.resolve(mayCommit(of) ? "committed" : "fenced");
      // One after the other, or an older commit could overtake a newer one.
      const result = lastCommit.then(
        () => commitNow(of, offsets),
        () => commitNow(of, offsets),
      );
      lastCommit = result;
      return result.then((outcome) => {
        commits?.inc({ result: outcome });
        return outcome;
      });
    },
    pause,
    resume,
    isPaused,
    pausedCount: () => paused.size,
    assigned: () => assignment,
    isJoined: () => phase === "joined",
    lastTick: () => tick,
  };
};
