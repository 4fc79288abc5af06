import { END_OF_TIME } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";

/** Instants in ms since the epoch; null: unknown. */
export type DeadLetterIdentity = {
  readonly topic: string;
  /** Where the record arrived first. */
  readonly arrival: { readonly partition: number; readonly offset: number };
  readonly arrivedAt: number | null;
  readonly replays: number;
  readonly place: { readonly partition: number; readonly offset: number };
};

export type Replay = {
  readonly runId: string;
  readonly place: { readonly partition: number; readonly offset: number };
};

/** @throws WarehouseError from every method */
export type ReplayStore = {
  /** The last replay of each, by `deadLetterKey`. */
  find(deadLetters: readonly DeadLetterIdentity[]): Promise<ReadonlyMap<string, Replay>>;
  /** `topicId`: of the dead-letter topic; null: unknown. */
  add(deadLetters: readonly DeadLetterIdentity[], runId: string, topicId: string | null): Promise<void>;
};

const END_OF_TIME_MS = END_OF_TIME / 1_000;

/** Producers set bus times that ClickHouse cannot hold. */
const storedTime = (arrivedAt: number | null): number =>
  arrivedAt !== null && arrivedAt >= 0 && arrivedAt < END_OF_TIME_MS ? arrivedAt : 0;

/** Equal for all copies of a dead letter. */
export const deadLetterKey = ({
  topic,
  arrival,
  arrivedAt,
  replays,
}: Pick<DeadLetterIdentity, "topic" | "arrival" | "arrivedAt" | "replays">): string =>
  `${arrival.partition}/${arrival.offset}/${storedTime(arrivedAt)}/${replays}/${topic}`;

type StoredReplay = {
  topic: string;
  partition: number;
  offset: number;
  arrived_ms: string;
  replays: number;
  run_id: string;
  dead_letter_partition: number;
  dead_letter_offset: number;
};

/** `start`: the first offset that is kept; `topicId`: of the dead-letter topic, null: unknown. */
export type KeptDeadLetters = {
  readonly topic: string;
  readonly topicId: string | null;
  readonly partition: number;
  readonly start: number;
};

/** @throws WarehouseError */
export const countReplayed = async (
  session: Session,
  kept: readonly KeptDeadLetters[],
): Promise<ReadonlyMap<string, number>> => {
  if (kept.length === 0) return new Map();
  const rows = await session.rows<{ topic: string; deadLetters: string }>(
    "replays.count",
    `SELECT topic, toString(uniqExact(dead_letter_partition, dead_letter_offset)) AS deadLetters FROM replayed_dead_letters
      WHERE dead_letter_offset >= transform(concat(toString(dead_letter_partition), '/', topic), {places:Array(String)},
        {starts:Array(UInt64)}, toUInt64(18446744073709551615))
        AND (dead_letter_topic_id = '' OR concat(dead_letter_topic_id, '/', topic) IN {ids:Array(String)}
          OR topic IN {withoutId:Array(String)})
      GROUP BY topic`,
    {
      parameters: {
        places: kept.map(({ topic, partition }) => `${partition}/${topic}`),
        starts: kept.map(({ start }) => start),
        ids: kept.map(({ topic, topicId }) => `${topicId}/${topic}`),
        withoutId: kept.flatMap(({ topic, topicId }) => (topicId === null ? [topic] : [])),
      },
    },
  );
  return new Map(rows.map(({ topic, deadLetters }) => [topic, Number(deadLetters)]));
};

/** Positions are sent in the URL. */
const CHUNK = 500;

/** `now`: ms since the epoch. */
export const createReplayStore = (deps: {
  readonly session: Session;
  readonly now: () => number;
}): ReplayStore => {
  const session = deps.session.with({ timeoutMs: 60_000 });

  const findSome = (topic: string, deadLetters: readonly DeadLetterIdentity[]): Promise<StoredReplay[]> =>
    session.rows(
      "replays.find",
      `SELECT topic, partition, offset, toString(toUnixTimestamp64Milli(arrived_at)) AS arrived_ms, replays,
          run_id, dead_letter_partition, dead_letter_offset
        FROM replayed_dead_letters FINAL
        WHERE topic = {topic:String} AND partition IN {partitions:Array(UInt16)} AND offset IN {offsets:Array(UInt64)}`,
      {
        parameters: {
          topic,
          partitions: [...new Set(deadLetters.map(({ arrival }) => arrival.partition))],
          offsets: deadLetters.map(({ arrival }) => arrival.offset),
        },
      },
    );

  return {
    find: async (deadLetters) => {
      const found = new Map<string, Replay>();
      for (const [topic, ofTopic] of Map.groupBy(deadLetters, (deadLetter) => deadLetter.topic)) {
        for (let at = 0; at < ofTopic.length; at += CHUNK) {
          for (const row of await findSome(topic, ofTopic.slice(at, at + CHUNK))) {
            const key = deadLetterKey({
              topic,
              arrival: { partition: row.partition, offset: row.offset },
              arrivedAt: Number(row.arrived_ms),
              replays: row.replays,
            });
            const place = { partition: row.dead_letter_partition, offset: row.dead_letter_offset };
            found.set(key, { runId: row.run_id, place });
          }
        }
      }
      return found;
    },
    add: async (deadLetters, runId, topicId) => {
      if (deadLetters.length === 0) return;
      const now = deps.now();
      const rows = deadLetters.map(({ topic, arrival, arrivedAt, replays, place }) => ({
        topic,
        partition: arrival.partition,
        offset: arrival.offset,
        arrived_at: new Date(storedTime(arrivedAt)).toISOString(),
        replays,
        version: now,
        run_id: runId,
        dead_letter_partition: place.partition,
        dead_letter_offset: place.offset,
        dead_letter_topic_id: topicId ?? "",
        replayed_at: new Date(now).toISOString(),
      }));
      await session.insert("replays.add", { table: "replayed_dead_letters", rows });
    },
  };
};
