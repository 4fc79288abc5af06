import {
  type EventType,
  type Micros,
  type RecordTable,
  type StoredRow,
  TABLE_FACTS,
  TABLES_OF,
} from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { createJobKeys } from "../job-keys.ts";
import { headersOfLanding } from "../../tables/landing.ts";
import { type LandingSelection, landingCondition } from "./landing-selection.ts";
import { NOTED_RECORDS, type RecordName } from "../../tables/record-keys.ts";
import { contentDigestSql } from "../../tables/content-digest.ts";

/** An event of the landing table. */
export type LandedEvent = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly clientId: string;
  readonly recordId: string;
  /** Date of creation of the record, as parsed when the event landed. */
  readonly dateCreated: Micros;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly text: string;
};

/** Events in one of the equally long stretches of a selection: `from` inclusive to `to` exclusive. */
export type LandingCount = { readonly from: number; readonly to: number; readonly events: number };

/**
 * Reads records with all their landed events and all their stored rows.
 *
 * @throws WarehouseError from every method
 */
export type RecordReader = {
  /** Counts the events of a selection per stretch of `width`, in µs, or in offsets for a range of offsets. */
  count(selection: LandingSelection, width: number, signal: AbortSignal): Promise<readonly LandingCount[]>;
  /** Notes the records with an event in the selection under `run`. */
  noteSelected(run: string, selection: LandingSelection, signal: AbortSignal): Promise<void>;
  note(run: string, records: readonly RecordName[], signal: AbortSignal): Promise<void>;
  /**
   * All rows of the noted records by `recordKey`; rows of equal key and version in the order of insertion.
   */
  stored(
    run: string,
    type: EventType,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly StoredRow[]>>;
  /** All events of the noted records, grouped by record, in the order of their upload. */
  landed(run: string, type: EventType, signal: AbortSignal): AsyncIterable<readonly LandedEvent[]>;
  /** Removes the records noted under `run`. */
  forget(run: string): Promise<void>;
};

/** Key of a record in the result of `stored`. */
export const recordKey = (clientId: string, id: string): string => `${clientId}\u0000${id}`;

type StoredValues = [
  client: string,
  id: string,
  date: number,
  target: string,
  kind: 0 | 1 | 2,
  version: string,
  uploadedAt: number,
  digest: string,
];
type LandedValues = [
  topic: string,
  partition: number,
  offset: number,
  client: string,
  id: string,
  dateCreated: number,
  headers: [name: string, value: string][],
  payload: string,
];

const storedSql = (table: RecordTable): string => {
  const { id, keyDate: date } = TABLE_FACTS[table];
  const [target, kind] = table === "handoffs" ? ["target", "toUInt8(target_kind)"] : ["''", "0"];
  // Names of parts contain their block numbers, which increase in the order of insertion.
  return `SELECT client_id, ${id}, ${date === null ? "0" : `toUnixTimestamp64Micro(${date})`}, ${target}, ${kind},
      toString(version), toUnixTimestamp64Micro(uploaded_at), ${contentDigestSql(table)}
    FROM ${table} WHERE (client_id, ${id}) IN (${NOTED_RECORDS})
    ORDER BY toUInt64(splitByChar('_', _part)[2]), _part_offset`;
};

const LANDED_SQL = `SELECT topic, partition, offset, client_id, record_id, toUnixTimestamp64Micro(date_created),
    CAST(headers, 'Array(Tuple(String, String))'), payload
  FROM landing WHERE type = {type:String} AND (client_id, record_id) IN (${NOTED_RECORDS})
  ORDER BY client_id, record_id, uploaded_at`;

/** @param deps.session of a user that may read, insert keys and delete them */
export function createRecordReader(deps: { readonly session: Session }): RecordReader {
  const session = deps.session.with({
    timeoutMs: 600_000,
    settings: {
      async_insert: 0,
      // A projection would still show rows that are masked in its table.
      optimize_use_projections: 0,
      // Events are sorted with their payloads: above this memory the sort spills to disk.
      max_bytes_before_external_sort: "536870912",
    },
  });
  const keys = createJobKeys({ session });

  return {
    async count(selection, width, signal) {
      const { sql, parameters, column } = landingCondition(selection);
      const counts: LandingCount[] = [];
      const query = `SELECT intDiv(${column}, {width:UInt64}) AS stretch, count() FROM landing WHERE ${sql}
        GROUP BY stretch ORDER BY stretch`;
      const chunks = session.chunks<[number, number]>("backfill.count", query, {
        parameters: { ...parameters, width },
        signal,
      });
      for await (const chunk of chunks) {
        for (const [stretch, events] of chunk) {
          counts.push({ from: stretch * width, to: (stretch + 1) * width, events });
        }
      }
      return counts;
    },
    async noteSelected(run, selection, signal) {
      const { sql, parameters } = landingCondition(selection);
      await session.command(
        "backfill.note_selected",
        `INSERT INTO job_keys (run_id, kind, client_id, id)
          SELECT DISTINCT {run:String}, type, client_id, record_id FROM landing WHERE ${sql}`,
        { parameters: { ...parameters, run }, signal },
      );
    },
    async note(run, records, signal) {
      const rows = records.map(({ type, clientId, id }) => ({
        run_id: run,
        kind: type,
        client_id: clientId,
        id,
      }));
      await session.insert("backfill.note", { table: "job_keys", rows }, { signal });
    },
    async stored(run, type, signal) {
      const records = new Map<string, StoredRow[]>();
      for (const table of TABLES_OF[type]) {
        const chunks = session.chunks<StoredValues>("backfill.stored", storedSql(table), {
          parameters: { run, type },
          signal,
        });
        for await (const chunk of chunks) {
          for (const [clientId, id, date, target, targetKind, version, uploadedAt, digest] of chunk) {
            const name = recordKey(clientId, id);
            const row = { table, date, target, targetKind, version: BigInt(version), uploadedAt, digest };
            const known = records.get(name);
            if (known === undefined) records.set(name, [row]);
            else known.push(row);
          }
        }
      }
      return records;
    },
    async *landed(run, type, signal) {
      const chunks = session.chunks<LandedValues>("backfill.landed", LANDED_SQL, {
        parameters: { run, type },
        signal,
      });
      for await (const chunk of chunks) {
        yield chunk.map(([topic, partition, offset, clientId, recordId, dateCreated, headers, text]) => ({
          topic,
          partition,
          offset,
          clientId,
          recordId,
          dateCreated,
          headers: headersOfLanding(headers),
          text,
        }));
      }
    },
    forget: keys.forget,
  };
}
