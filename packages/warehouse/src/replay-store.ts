import type { ClickHouseClient } from "@clickhouse/client";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** A dead letter. Instants are milliseconds since the epoch, null when unknown. */
export type LetterIdentity = {
  readonly topic: string;
  /** Where the record stood when it came first. */
  readonly arrival: { readonly partition: number; readonly offset: number };
  readonly arrivedAt: number | null;
  /** How often the record was replayed before. */
  readonly replays: number;
  /** Where the letter stands among the dead letters of the topic. */
  readonly place: { readonly partition: number; readonly offset: number };
};

/** Who replayed a letter, and which of its copies. */
export type Replay = {
  readonly runId: string;
  readonly place: { readonly partition: number; readonly offset: number };
};

/** Which dead letters were replayed. Throws `WarehouseError`. */
export type ReplayStore = {
  /** By `letterKey`, the last replay of each letter that was replayed. */
  find(letters: readonly LetterIdentity[]): Promise<ReadonlyMap<string, Replay>>;
  add(letters: readonly LetterIdentity[], runId: string): Promise<void>;
  close(): Promise<void>;
};

/** One text for all copies of a letter. */
export const letterKey = ({
  topic,
  arrival,
  arrivedAt,
  replays,
}: Pick<LetterIdentity, "topic" | "arrival" | "arrivedAt" | "replays">): string =>
  `${arrival.partition}/${arrival.offset}/${arrivedAt ?? 0}/${replays}/${topic}`;

type StoredReplay = {
  topic: string;
  partition: number;
  offset: string;
  arrived_ms: string;
  replays: number;
  run_id: string;
  letter_partition: number;
  letter_offset: string;
};

/** Letters of one query; their places stand in its address. */
const CHUNK = 500;

/** `url`: `http://user:password@host:port/database`; `now` gives milliseconds since the epoch. */
export const createReplayStore = (
  deps: WarehouseAccess & {
    readonly now: () => number;
  },
): ReplayStore => {
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 2,
    requestTimeoutMs: 60_000,
    settings: { output_format_json_quote_64bit_integers: 1 },
  });

  const findSome = async (topic: string, letters: readonly LetterIdentity[]): Promise<StoredReplay[]> => {
    const result = await client.query({
      query: `SELECT topic, partition, offset, toString(toUnixTimestamp64Milli(arrived_at)) AS arrived_ms, replays,
          run_id, letter_partition, letter_offset
        FROM replayed_letters FINAL
        WHERE topic = {topic:String} AND partition IN {partitions:Array(UInt16)} AND offset IN {offsets:Array(UInt64)}`,
      query_params: {
        topic,
        partitions: [...new Set(letters.map(({ arrival }) => arrival.partition))],
        offsets: letters.map(({ arrival }) => arrival.offset),
      },
      format: "JSONEachRow",
    });
    return result.json<StoredReplay>();
  };

  return {
    find: async (letters) => {
      const found = new Map<string, Replay>();
      try {
        for (const [topic, ofTopic] of Map.groupBy(letters, (letter) => letter.topic)) {
          for (let at = 0; at < ofTopic.length; at += CHUNK) {
            for (const row of await findSome(topic, ofTopic.slice(at, at + CHUNK))) {
              const key = letterKey({
                topic,
                arrival: { partition: row.partition, offset: Number(row.offset) },
                arrivedAt: Number(row.arrived_ms),
                replays: row.replays,
              });
              const place = { partition: row.letter_partition, offset: Number(row.letter_offset) };
              found.set(key, { runId: row.run_id, place });
            }
          }
        }
        return found;
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    add: async (letters, runId) => {
      if (letters.length === 0) return;
      const now = deps.now();
      try {
        await client.insert({
          table: "replayed_letters",
          values: letters.map(({ topic, arrival, arrivedAt, replays, place }) => ({
            topic,
            partition: arrival.partition,
            offset: arrival.offset,
            arrived_at: new Date(arrivedAt ?? 0).toISOString(),
            replays,
            version: now,
            run_id: runId,
            letter_partition: place.partition,
            letter_offset: place.offset,
            replayed_at: new Date(now).toISOString(),
          })),
          format: "JSONEachRow",
          clickhouse_settings: { async_insert: 0 },
        });
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
};
