import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@conversation-export/runtime";
import kafkajs, { type EachBatchPayload } from "kafkajs";
import { isPassedError, type Passed } from "../kafkajs/fetch-response.ts";
import type { JoinGate } from "../topics/join-gate.ts";
import { rejoinError, type TopicGuard } from "../topics/topic-guard.ts";
import type { DamageCheck } from "../records/damage-check.ts";
import { toOffset } from "../records/offset.ts";
import { lastOffsetOf, readSlices } from "../records/record-slices.ts";
import type { Commits } from "./commits.ts";
import type { MessageSlice, Taken } from "./contract.ts";
import type { Membership } from "./membership.ts";
import type { Pauses } from "./pauses.ts";
import { createSliceSizer } from "./slices.ts";

const SLICE_MS = 20;
const STALE_BATCH_MS = 20;
/** Brokers answer at once for a partition that they cannot read. */
const ERROR_PAUSE_MS = 5000;

type FetchedPart = { readonly fetchedOffset: string; readonly messages: Passed };

/** In slices, which leave the event loop free for heartbeats. */
export const createBatchReader = (deps: {
  readonly membership: Membership;
  readonly gate: Pick<JoinGate, "committedOffset">;
  readonly topics: Pick<TopicGuard, "isRecent">;
  readonly pauses: Pauses;
  readonly commits: Pick<Commits, "sendBy">;
  readonly isLasting: DamageCheck;
  readonly log: Logger;
  readonly onMessages: (slice: MessageSlice) => Taken;
}) => {
  const { membership, gate, topics, pauses, commits, isLasting, log } = deps;
  const sizer = createSliceSizer(SLICE_MS);

  const handOver = (slice: MessageSlice): Taken => {
    try {
      const taken = deps.onMessages(slice);
      membership.lastTick = Date.now();
      return taken;
    } catch (error) {
      // After a non-retriable error kafkajs does not restart.
      throw new kafkajs.KafkaJSNonRetriableError(error instanceof Error ? error : String(error));
    }
  };

  /** After another fetcher's rejoin, resolving offsets would skip messages of the new epoch. */
  const isCurrent = (payload: EachBatchPayload): boolean => {
    const { batch } = payload;
    const { topic, partition } = batch;
    const { fetchedOffset, messages } = batch as unknown as FetchedPart;
    // A topic that was created anew may have the same position.
    if (messages[0] !== undefined && !topics.isRecent(messages[0])) return false;
    // kafkajs gives the partition as a string here.
    const resolved = payload
      .uncommittedOffsets()
      .topics.find((entry) => entry.topic === topic)
      ?.partitions.find((entry) => String(entry.partition) === String(partition))?.offset;
    const position = Number(resolved ?? String(gate.committedOffset(topic, partition)));
    return Math.max(0, position) === Number(fetchedOffset);
  };

  const pass = (payload: EachBatchPayload, slice: MessageSlice, startedAt: number): boolean => {
    const { topic, partition, messages, nextOffset } = slice;
    const taken = handOver(slice);
    sizer.took(messages.length, performance.now() - startedAt);

    if (typeof taken === "object" && taken.processed < messages.length) {
      const last = messages[taken.processed - 1];
      if (last !== undefined) payload.resolveOffset(String(lastOffsetOf(last)));
      pauses.pause([{ topic, partition }]);
      return false;
    }
    payload.resolveOffset(String(nextOffset - 1));
    if (taken !== "continue") pauses.pause([{ topic, partition }]);
    return taken === "continue";
  };

  const eachBatch = async (payload: EachBatchPayload): Promise<void> => {
    const { batch } = payload;
    const { topic, partition } = batch;
    const { fetchedOffset, messages: passed } = batch as unknown as FetchedPart;
    if (membership.phase === "joining") throw rejoinError("the last join did not finish");
    if (membership.phase !== "joined" || (!isPassedError(passed) && !isCurrent(payload))) {
      await sleep(STALE_BATCH_MS);
      return;
    }
    if (isPassedError(passed)) {
      const { message } = passed[0].error;
      log.warn({ topic, partition, offset: fetchedOffset, error: message }, "reading a partition failed");
      pauses.pauseFor(ERROR_PAUSE_MS, { topic, partition });
      return;
    }
    const { epoch } = membership;
    const goesOn = (): boolean => membership.phase === "joined" && membership.epoch === epoch;
    const highWatermark = toOffset(batch.highWatermark);
    commits.sendBy((request) => payload.commitOffsetsIfNecessary(request));

    let position = Math.max(0, Number(fetchedOffset));
    const slices = readSlices(passed, {
      where: { topic, partition },
      from: position,
      size: sizer.size,
      isLasting,
    });
    let startedAt = performance.now();
    for await (const { messages, nextOffset } of slices) {
      // A rejoin may have come while a part was unpacked.
      if (!goesOn()) return;
      // A slice without progress is a sign of life from a long batch.
      if (nextOffset > position) {
        const slice = { epoch, topic, partition, messages, nextOffset, highWatermark };
        if (!pass(payload, slice, startedAt)) return;
        position = nextOffset;
      }
      await nextTurn();
      await payload.heartbeat();
      // A pause, a stop or a rejoin may have come in that turn.
      if (!goesOn() || pauses.isPaused({ topic, partition })) return;
      startedAt = performance.now();
    }
  };

  return { eachBatch };
};
