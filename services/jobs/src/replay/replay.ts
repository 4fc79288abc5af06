import { randomUUID } from "node:crypto";
import {
  type BusHeaders,
  type BusMessage,
  type BusRange,
  type DeadLetter,
  deadLetterFits,
  type DeadLetterReader,
  isTooLarge,
  type OutgoingMessage,
  type Producer,
  type RangeReader,
} from "@conversation-export/bus";
import { arrivalHeaders, replayHeaders, replaysOf } from "@conversation-export/domain";
import { type JobHandler, type ReplayData, replayJob, type ReplayResult } from "@conversation-export/queue";
import { ServiceError, unlessAborted } from "@conversation-export/runtime";
import { deadLetterKey, type ReplayStore } from "@conversation-export/warehouse";
import { readOriginals } from "./read-originals.ts";

const SEND_BYTES = 8 * 1024 * 1024;

type Outgoing = { readonly message: OutgoingMessage; readonly deadLetter: DeadLetter };

/** Ranges are fixed at the start: new dead letters lie after them. */
export type ReplayState = {
  readonly runId: string;
  readonly ranges: readonly (BusRange & { readonly source: string })[];
  readonly result: ReplayResult;
};

const nothing = (dryRun: boolean): ReplayResult => ({
  dryRun,
  read: 0,
  replayed: 0,
  byReason: [],
  skipped: {
    notMatching: 0,
    replayedBefore: 0,
    tooManyReplays: 0,
    withoutPayload: 0,
    tooLarge: 0,
    unreadable: 0,
  },
});

const instantOf = (text: string | null): number | null => (text === null ? null : Date.parse(text));

/** A repetition changes nothing, since messages carry their first place: so recorded only after sending. */
export const createReplay = (deps: {
  readonly topics: readonly string[];
  readonly deadLetters: Pick<DeadLetterReader, "ranges" | "read">;
  readonly reader: Pick<RangeReader, "bounds" | "read">;
  readonly producer: Pick<Producer, "send">;
  readonly store: Pick<ReplayStore, "find" | "add">;
  readonly onReplayed: (topic: string, reason: string, deadLetters: number) => void;
}): JobHandler<ReplayData, ReplayResult, ReplayState> => {
  const { topics, deadLetters, reader, producer, store, onReplayed } = deps;

  return {
    type: replayJob,
    run: async (context) => {
      const { data, signal, log } = context;
      const filter = { reasons: data.reasons, from: instantOf(data.from), to: instantOf(data.to) };
      let state = context.state;
      if (state === undefined) {
        state = await begin(topics, deadLetters, data);
        await context.save(state);
      }
      const { runId } = state;
      const counts = structuredClone(state.result);
      const ranges = state.ranges.map((range) => ({ ...range }));
      const total = counts.read + ranges.reduce((sum, { from, to }) => sum + to - from, 0);
      const partitionsOf = new Map<string, number>();
      /** Sent in this attempt, or counted in a dry run. */
      const seen = new Set<string>();

      const noteReplayed = ({ topic, reason }: DeadLetter): void => {
        counts.replayed += 1;
        const entry = counts.byReason.find((one) => one.topic === topic && one.reason === reason);
        if (entry === undefined) counts.byReason.push({ topic, reason, deadLetters: 1 });
        else entry.deadLetters += 1;
      };

      const choose = async (read: readonly DeadLetter[]): Promise<DeadLetter[]> => {
        const fitting = read.filter((deadLetter) => deadLetterFits(deadLetter, filter));
        counts.skipped.notMatching += read.length - fitting.length;
        const few = fitting.filter(({ replays }) => replays < data.maxReplays);
        counts.skipped.tooManyReplays += fitting.length - few.length;
        const known = await store.find(few);
        return few.filter((deadLetter) => {
          const key = deadLetterKey(deadLetter);
          const replay = known.get(key);
          const ofThisRun = replay?.runId === runId;
          // An attempt that died had sent it.
          const isSent =
            ofThisRun &&
            replay.place.partition === deadLetter.place.partition &&
            replay.place.offset === deadLetter.place.offset;
          if (isSent) {
            noteReplayed(deadLetter);
            return false;
          }
          if (ofThisRun || seen.has(key) || (replay !== undefined && !data.again)) {
            counts.skipped.replayedBefore += 1;
            return false;
          }
          seen.add(key);
          return true;
        });
      };

      const toMessage = async (source: BusMessage, deadLetter: DeadLetter): Promise<OutgoingMessage> => {
        let partitions = partitionsOf.get(deadLetter.topic);
        if (partitions === undefined) {
          partitions = (await reader.bounds(deadLetter.topic)).length;
          partitionsOf.set(deadLetter.topic, partitions);
        }
        const headers: BusHeaders = {
          ...source.headers,
          ...deadLetter.message.headers,
          // The dead letter has the place of the first of its messages.
          ...(deadLetter.lastOffset !== null && arrivalHeaders(source)),
        };
        const replays = Math.max(deadLetter.replays, replaysOf(source.headers));
        // Mark a dead letter without payload.
        delete headers["dl-payload"];
        delete headers["dl-last-offset"];
        return {
          key: source.key,
          value: source.value,
          headers: replayHeaders(headers, { replays }),
          // Keeps the order of a key where possible.
          ...(deadLetter.arrival.partition < partitions && { partition: deadLetter.arrival.partition }),
        };
      };

      const replay = async (topic: string, topicId: string | null, chosen: readonly DeadLetter[]) => {
        const complete: DeadLetter[] = [];
        const tooLarge = new Set<DeadLetter>();
        let messages: Outgoing[] = [];
        let bytes = 0;
        const sendOrSkip = async (all: readonly Outgoing[]): Promise<void> => {
          try {
            signal.throwIfAborted();
            // The producer waits for brokers without end.
            const sent = producer.send(
              topic,
              all.map(({ message }) => message),
            );
            await unlessAborted(sent, signal);
          } catch (error) {
            const [first] = all;
            if (first === undefined || !isTooLarge(error)) throw error;
            if (all.length === 1) tooLarge.add(first.deadLetter);
            else for (const one of all) await sendOrSkip([one]);
          }
        };
        const send = async (): Promise<void> => {
          signal.throwIfAborted();
          if (!data.dryRun && messages.length > 0) await sendOrSkip(messages);
          messages = [];
          bytes = 0;
        };
        for (const deadLetter of chosen) {
          const own: Outgoing[] = [];
          const onMessage = async (source: BusMessage): Promise<void> => {
            own.push({ message: await toMessage(source, deadLetter), deadLetter });
            bytes += source.value?.length ?? 0;
            if (bytes < SEND_BYTES) return;
            messages.push(...own.splice(0));
            await send();
          };
          if (deadLetter.message.value !== null) await onMessage(deadLetter.message);
          else if (!(await readOriginals(reader, deadLetter, { signal, onMessage }))) {
            counts.skipped.withoutPayload += 1;
            continue;
          }
          messages.push(...own);
          complete.push(deadLetter);
        }
        await send();
        const replayed = complete.filter((deadLetter) => !tooLarge.has(deadLetter));
        counts.skipped.tooLarge += complete.length - replayed.length;
        if (replayed.length === 0) return;
        if (!data.dryRun) {
          await store.add(replayed, runId, topicId);
          for (const [reason, sent] of Map.groupBy(replayed, (deadLetter) => deadLetter.reason)) {
            onReplayed(topic, reason, sent.length);
          }
        }
        for (const deadLetter of replayed) noteReplayed(deadLetter);
      };

      for (const range of ranges) {
        const { source, ...where } = range;
        if (range.from >= range.to) continue;
        for await (const batch of deadLetters.read(where, signal)) {
          counts.read += batch.deadLetters.length + batch.unreadable;
          counts.skipped.unreadable += batch.unreadable;
          await replay(source, range.topicId ?? null, await choose(batch.deadLetters));
          range.from = batch.next;
          await context.save({ runId, ranges, result: counts });
          await context.progress({ done: counts.read, total, unit: "dead letters", note: source });
        }
        // The range may end in places without dead letters.
        range.from = range.to;
      }
      counts.byReason.sort(
        (one, other) => one.topic.localeCompare(other.topic) || one.reason.localeCompare(other.reason),
      );
      await context.progress({ done: counts.read, total: counts.read, unit: "dead letters" });
      log.info(
        { ...counts, byReason: undefined },
        data.dryRun ? "dead letters counted" : "dead letters replayed",
      );
      return counts;
    },
  };
};

/** @throws ServiceError `unknown_topic`, `place_without_topic`, `unknown_dead_letter` */
const begin = async (
  topics: readonly string[],
  deadLetters: Pick<DeadLetterReader, "ranges">,
  data: ReplayData,
): Promise<ReplayState> => {
  const { topic, place, reasons } = data;
  if (topic !== null && !topics.includes(topic)) {
    throw new ServiceError("unknown_topic", `${topic} is none of the topics ${topics.join(", ")}`);
  }
  if (place !== null && topic === null) {
    throw new ServiceError("place_without_topic", "a place needs the topic of the record beside it");
  }
  const filter = { reasons, from: instantOf(data.from), to: instantOf(data.to) };
  const ranges: ReplayState["ranges"][number][] = [];
  for (const source of topic === null ? topics : [topic]) {
    for (const range of await deadLetters.ranges(source, filter)) {
      if (place === null) {
        ranges.push({ ...range, source });
      } else if (
        range.partition === place.partition &&
        range.from <= place.offset &&
        place.offset < range.to
      ) {
        ranges.push({ ...range, from: place.offset, to: place.offset + 1, source });
      }
    }
  }
  if (place !== null && ranges.length === 0) {
    throw new ServiceError(
      "unknown_dead_letter",
      `no dead letter stands at partition ${place.partition}, offset ${place.offset} of those of ${topic}`,
    );
  }
  return { runId: randomUUID(), ranges, result: nothing(data.dryRun) };
};
