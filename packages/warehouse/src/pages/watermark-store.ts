import { setTimeout as sleep } from "node:timers/promises";
import { formatTimestampZ, LIST_NAMES, type ListName, type Micros } from "@conversation-export/domain";
import type { Session } from "../session/session.ts";

/** µs since the epoch; lists without one are missing. */
export type Watermarks = Readonly<Partial<Record<ListName, Micros>>>;

export type TopicIdentity = {
  readonly topicId: string;
  /** Found deleted and created anew, ms since the epoch; null: never. */
  readonly createdAnew: number | null;
};

/** @throws WarehouseError from every method */
export type WatermarkReader = {
  load(): Promise<Watermarks>;
  loadTopics(): Promise<Readonly<Partial<Record<ListName, TopicIdentity>>>>;
};

/** @throws WarehouseError from every method */
export type WatermarkStore = WatermarkReader & {
  /** A lower one has no effect; false: over a second ahead of ClickHouse's clock, not stored. */
  save(list: ListName, instant: Micros): Promise<boolean>;
  /** Replaces what was saved before, whatever the clocks say. */
  saveTopic(list: ListName, topic: TopicIdentity): Promise<void>;
};

/** Synchronised clocks differ by less. */
const MAX_AHEAD_MICROS = 1_000_000;

const isListName = (name: string): name is ListName => LIST_NAMES.some((list) => list === name);

const TOPIC_OF = "topic of ";

const TIMEOUT_MS = 10_000;

/** Negative when it has passed. */
const microsUntil = async (session: Session, instant: Micros): Promise<number> => {
  const [row] = await session.rows<{ ahead: string }>(
    "watermarks.clock",
    "SELECT toString({instant:Int64} - toUnixTimestamp64Micro(now64(6))) AS ahead",
    { parameters: { instant } },
  );
  return Number(row?.ahead);
};

export function createWatermarkStore(deps: { readonly session: Session }): WatermarkStore {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  return {
    async load() {
      const rows = await session.rows<{ list: string; micros: string }>(
        "watermarks.load",
        "SELECT list, toString(max(version)) AS micros FROM watermarks GROUP BY list",
      );
      return Object.fromEntries(
        rows.filter(({ list }) => isListName(list)).map(({ list, micros }) => [list, Number(micros)]),
      );
    },
    async loadTopics() {
      const rows = await session.rows<{ list: string; id: string; anew: string }>(
        "watermarks.topics",
        `SELECT list, argMax(topic_id, version) AS id,
        toString(toUnixTimestamp64Milli(argMax(created_anew_at, version))) AS anew
      FROM watermarks WHERE startsWith(list, '${TOPIC_OF}') GROUP BY list`,
      );
      return Object.fromEntries(
        rows
          .map((row) => ({ ...row, list: row.list.slice(TOPIC_OF.length) }))
          .filter(({ list }) => isListName(list))
          .map(({ list, id, anew }) => [
            list,
            { topicId: id, createdAnew: anew === "0" ? null : Number(anew) },
          ]),
      );
    },
    async saveTopic(list, { topicId, createdAnew }) {
      const name = TOPIC_OF + list;
      const [next] = await session.rows<{ micros: string }>(
        "watermarks.next_topic",
        `SELECT toString(greatest(toUnixTimestamp64Micro(now64(6)), toInt64(max(version)) + 1)) AS micros
      FROM watermarks WHERE list = {name:String}`,
        { parameters: { name } },
      );
      const version = Number(next?.micros);
      const row = {
        list: name,
        version,
        instant: formatTimestampZ(version),
        topic_id: topicId,
        created_anew_at: new Date(createdAnew ?? 0).toISOString(),
      };
      await session.insert("watermarks.save_topic", { table: "watermarks", rows: [row] });
    },
    async save(list, instant) {
      const ahead = await microsUntil(session, instant);
      // The largest wins for good: one from a wrong clock would be false until its time comes.
      if (ahead > MAX_AHEAD_MICROS) return false;
      if (ahead > 0) await sleep(Math.ceil(ahead / 1000));
      const row = { list, version: instant, instant: formatTimestampZ(instant) };
      await session.insert(
        "watermarks.save",
        { table: "watermarks", rows: [row] },
        // The server combines rows of all lists and processes: fewer parts.
        { settings: { async_insert: 1 } },
      );
      return true;
    },
  };
}
