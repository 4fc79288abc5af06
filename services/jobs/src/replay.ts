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
import { ServiceError } from "@conversation-export/runtime";
import { letterKey, type ReplayStore } from "@conversation-export/warehouse";
import { firstOf } from "./first-of.ts";
import { readOriginal } from "./read-original.ts";

type Skip = keyof ReplayResult["skipped"];

/** What is to be read, fixed when the job begins: letters of records that it replays and that fail again lie behind. */
export type ReplayState = {
  readonly runId: string;
  /** With the topics of the records; `from` moves on. */
  readonly ranges: readonly (BusRange & { readonly source: string })[];
  readonly result: ReplayResult;
};

type Counts = {
  read: number;
  replayed: Map<string, { topic: string; reason: string; letters: number }>;
  skipped: Record<Skip, number>;
};

const countsOf = (result: ReplayResult): Counts => ({
  read: result.read,
  replayed: new Map(result.byReason.map((one) => [`${one.topic}.${one.reason}`, { ...one }])),
  skipped: { ...result.skipped },
});

const resultOf = ({ read, replayed, skipped }: Counts, dryRun: boolean): ReplayResult => {
  const byReason = [...replayed.values()].sort(
    (one, other) => one.topic.localeCompare(other.topic) || one.reason.localeCompare(other.reason),
  );
  return {
    dryRun,
    read,
    replayed: byReason.reduce((sum, { letters }) => sum + letters, 0),
    byReason,
    skipped: { ...skipped },
  };
};

const NOTHING: ReplayResult["skipped"] = {
  notMatching: 0,
  replayedBefore: 0,
  tooManyReplays: 0,
  withoutPayload: 0,
  unreadable: 0,
};

const instantOf = (text: string | null): number | null => (text === null ? null : Date.parse(text));

/**
 * Sends dead letters to the topic that their records came from, where ingest reads them as any other message. They keep
 * the place of their first arrival and with it their version, so a letter that is sent twice changes nothing. A letter
 * is noted when it has been sent; one that fails again is a letter of its own, with one replay more.
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

  const begin = async (data: ReplayData): Promise<ReplayState> => {
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
        "unknown_letter",
        `no dead letter stands at partition ${place.partition}, offset ${place.offset} of those of ${topic}`,
      );
    }
    const counts: Counts = { read: 0, replayed: new Map(), skipped: { ...NOTHING } };
    return { runId: randomUUID(), ranges, result: resultOf(counts, data.dryRun) };
  };

  return {
    type: replayJob,
    run: async (context) => {
      const { data, signal, log } = context;
      const filter = { reasons: data.reasons, from: instantOf(data.from), to: instantOf(data.to) };
      let state = context.state;
      if (state === undefined) {
        state = await begin(data);
        await context.save(state);
      }
      const { runId } = state;
      const counts = countsOf(state.result);
      const ranges = state.ranges.map((range) => ({ ...range }));
      const total = counts.read + ranges.reduce((sum, { from, to }) => sum + to - from, 0);
      const partitionsOf = new Map<string, number>();
      /** Letters that this attempt has sent, or would have. */
      const seen = new Set<string>();

      const noteReplayed = (letter: Letter): void => {
        const key = `${letter.topic}.${letter.reason}`;
        const entry = counts.replayed.get(key) ?? { topic: letter.topic, reason: letter.reason, letters: 0 };
        entry.letters += 1;
        counts.replayed.set(key, entry);
      };

      /** Which of the letters are to be sent; the others are counted. */
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
          // An attempt that died had sent this very letter.
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
        // The payload is there again.
        delete headers["dl-payload"];
        return {
          key: source.key,
          value: source.value,
          headers: replayHeaders(headers, letter),
          // Among its neighbours, so that the order of a key is kept where it can be.
          ...(letter.arrival.partition < partitions && { partition: letter.arrival.partition }),
        };
      };

      const replay = async (chosen: readonly Letter[]): Promise<void> => {
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
            await firstOf(producer.send(topic, batch.messages), signal);
            await store.add(batch.letters, runId);
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
          await replay(await choose(batch.letters));
          range.from = batch.next;
          await context.save({ runId, ranges, result: resultOf(counts, data.dryRun) });
          await context.progress({ done: counts.read, total, unit: "letters", note: source });
        }
        // What lies behind the last letter is no letter.
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
