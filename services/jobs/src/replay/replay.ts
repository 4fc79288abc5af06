import { randomUUID } from "node:crypto";
import {
  type BusRange,
  type Letter,
  letterFits,
  type LetterReader,
  type OutgoingMessage,
  type Producer,
  type RangeReader,
} from "@conversation-export/bus";
import { replayHeaders } from "@conversation-export/domain";
import { type JobHandler, type ReplayData, replayJob, type ReplayResult } from "@conversation-export/queue";
import { ServiceError, unlessAborted } from "@conversation-export/runtime";
import { letterKey, type ReplayStore } from "@conversation-export/warehouse";
import { readOriginal } from "./read-original.ts";
import { countsOf, noCounts, resultOf } from "./replay-counts.ts";

/** Progress of a replay. Its ranges are fixed at the start, so letters that fail again lie behind them. */
export type ReplayState = {
  readonly runId: string;
  /** `source`: the topic of the records; `from` advances. */
  readonly ranges: readonly (BusRange & { readonly source: string })[];
  readonly result: ReplayResult;
};

const instantOf = (text: string | null): number | null => (text === null ? null : Date.parse(text));

/**
 * Sends dead letters to their topic with the place of their first arrival, so a repetition changes nothing.
 * Recorded after sending. A record that fails again becomes a new dead letter.
 */
export const createReplay = (deps: {
  /** The topics of the records. */
  readonly topics: readonly string[];
  readonly letters: Pick<LetterReader, "ranges" | "read">;
  readonly reader: Pick<RangeReader, "bounds" | "read">;
  readonly producer: Pick<Producer, "send">;
  readonly store: Pick<ReplayStore, "find" | "add">;
  readonly onReplayed: (topic: string, reason: string, letters: number) => void;
}): JobHandler<ReplayData, ReplayResult, ReplayState> => {
  const { topics, letters, reader, producer, store, onReplayed } = deps;

  return {
    type: replayJob,
    run: async (context) => {
      const { data, signal, log } = context;
      const filter = { reasons: data.reasons, from: instantOf(data.from), to: instantOf(data.to) };
      let state = context.state;
      if (state === undefined) {
        state = await begin(topics, letters, data);
        await context.save(state);
      }
      const { runId } = state;
      const counts = countsOf(state.result);
      const ranges = state.ranges.map((range) => ({ ...range }));
      const total = counts.read + ranges.reduce((sum, { from, to }) => sum + to - from, 0);
      const partitionsOf = new Map<string, number>();
      /** Letters that this attempt has sent, or would have sent in a dry run. */
      const seen = new Set<string>();

      const noteReplayed = (letter: Letter): void => {
        const key = `${letter.topic}.${letter.reason}`;
        const entry = counts.replayed.get(key) ?? { topic: letter.topic, reason: letter.reason, letters: 0 };
        entry.letters += 1;
        counts.replayed.set(key, entry);
      };

      /** Selects the letters to send and counts the others. */
      const choose = async (read: readonly Letter[]): Promise<Letter[]> => {
        const fitting = read.filter((letter) => letterFits(letter, filter));
        counts.skipped.notMatching += read.length - fitting.length;
        const few = fitting.filter(({ replays }) => replays < data.maxReplays);
        counts.skipped.tooManyReplays += fitting.length - few.length;
        const known = await store.find(few);
        return few.filter((letter) => {
          const key = letterKey(letter);
          const replay = known.get(key);
          const ofThisRun = replay?.runId === runId;
          // An attempt that died had sent this letter.
          const isSent =
            ofThisRun &&
            replay.place.partition === letter.place.partition &&
            replay.place.offset === letter.place.offset;
          if (isSent) {
            noteReplayed(letter);
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

      const toMessage = async (letter: Letter): Promise<OutgoingMessage | null> => {
        const source =
          letter.message.value === null ? await readOriginal(reader, letter, signal) : letter.message;
        if (source === null) return null;
        let partitions = partitionsOf.get(letter.topic);
        if (partitions === undefined) {
          partitions = (await reader.bounds(letter.topic)).length;
          partitionsOf.set(letter.topic, partitions);
        }
        const headers = { ...source.headers, ...letter.message.headers };
        // This header marks a letter without payload.
        delete headers["dl-payload"];
        return {
          key: source.key,
          value: source.value,
          headers: replayHeaders(headers, letter),
          // The old partition, so that the order of a key is kept where possible.
          ...(letter.arrival.partition < partitions && { partition: letter.arrival.partition }),
        };
      };

      const replay = async (chosen: readonly Letter[], topicId: string | null): Promise<void> => {
        const bySource = new Map<string, { letters: Letter[]; messages: OutgoingMessage[] }>();
        for (const letter of chosen) {
          const message = await toMessage(letter);
          if (message === null) {
            counts.skipped.withoutPayload += 1;
            continue;
          }
          const batch = bySource.get(letter.topic) ?? { letters: [], messages: [] };
          batch.letters.push(letter);
          batch.messages.push(message);
          bySource.set(letter.topic, batch);
        }
        for (const [topic, batch] of bySource) {
          signal.throwIfAborted();
          if (!data.dryRun) {
            // The producer waits for brokers for as long as it takes.
            await unlessAborted(producer.send(topic, batch.messages), signal);
            await store.add(batch.letters, runId, topicId);
            for (const [reason, sent] of Map.groupBy(batch.letters, (letter) => letter.reason)) {
              onReplayed(topic, reason, sent.length);
            }
          }
          for (const letter of batch.letters) noteReplayed(letter);
        }
      };

      for (const range of ranges) {
        const { source, ...where } = range;
        if (range.from >= range.to) continue;
        for await (const batch of letters.read({ ...where }, signal)) {
          counts.read += batch.letters.length + batch.unreadable;
          counts.skipped.unreadable += batch.unreadable;
          await replay(await choose(batch.letters), range.topicId ?? null);
          range.from = batch.next;
          await context.save({ runId, ranges, result: resultOf(counts, data.dryRun) });
          await context.progress({ done: counts.read, total, unit: "letters", note: source });
        }
        // The range may end in places without letters.
        range.from = range.to;
      }
      const result = resultOf(counts, data.dryRun);
      await context.progress({ done: counts.read, total: counts.read, unit: "letters" });
      log.info(
        { ...result, byReason: undefined },
        data.dryRun ? "dead letters counted" : "dead letters replayed",
      );
      return result;
    },
  };
};

/** @throws ServiceError `unknown_topic`, `place_without_topic`, `unknown_dead_letter` */
const begin = async (
  topics: readonly string[],
  letters: Pick<LetterReader, "ranges">,
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
    for (const range of await letters.ranges(source, filter)) {
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
  return { runId: randomUUID(), ranges, result: resultOf(noCounts(), data.dryRun) };
};
