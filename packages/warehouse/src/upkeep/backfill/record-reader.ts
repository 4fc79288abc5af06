import {
  EVENT_TYPES,
  type EventType,
  type ExportRecord,
  type RecordTable,
  type StoredRow,
  TABLE_FACTS,
  TABLES_OF,
} from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { NO_PROJECTIONS } from "../deletion.ts";
import type { Alive } from "../job-keys.ts";
import { CARRIED, createCarriedKeys, type CarriedKey, ofDates, ofRun } from "../carried-keys.ts";
import { storedColumns, storedRowOf, type StoredValues } from "./stored-rows.ts";

/** @throws WarehouseError from every method */
export type RecordReader = {
  /** Under all dates, in the update index only at the export's place; equal versions as inserted. */
  stored(records: readonly ExportRecord[], signal: AbortSignal): Promise<(readonly StoredRow[])[]>;
  sweep(alive: Alive): Promise<void>;
};

type FoundRow = [client: string, id: string, ...StoredValues];

/** Unique within a type. */
export const recordKey = (clientId: string, id: string): string => `${clientId}\u0000${id}`;

const PREFIX = "preview ";
const UPDATED = "updated";

const isAsked = (table: RecordTable): string => {
  const { id, keyDate, created } = TABLE_FACTS[table];
  if (keyDate === null) return `(client_id, ${id}) GLOBAL IN ${ofRun(CARRIED, "client_id, id")}`;
  return keyDate === created
    ? ofDates(created, id)
    : `(client_id, ${keyDate}, ${id}) GLOBAL IN ${ofRun(UPDATED, "client_id, date_created, id")}`;
};

const keysOf = (record: ExportRecord): CarriedKey[] => {
  const { clientId, id, dateCreated } = record;
  const carried = { kind: CARRIED, clientId, id, date: dateCreated };
  return TABLES_OF[record.type].some((table) => TABLE_FACTS[table].keyDate === "date_updated")
    ? [carried, { ...carried, kind: UPDATED, date: record.dateUpdated }]
    : [carried];
};

export function createRecordReader(deps: {
  readonly session: Session;
  readonly holder: string;
}): RecordReader {
  const session = deps.session.with({ timeoutMs: 600_000, settings: NO_PROJECTIONS });
  const noted = createCarriedKeys({ session, prefix: PREFIX, holder: deps.holder });

  const readType = (
    type: EventType,
    records: readonly ExportRecord[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly FoundRow[]>> =>
    noted.during(records.flatMap(keysOf), { type, signal }, async (ask) => {
      const found: FoundRow[] = [];
      for (const table of TABLES_OF[type]) {
        const { id } = TABLE_FACTS[table];
        const rows = await ask<FoundRow>(
          "backfill.stored",
          `SELECT client_id, ${id}, '${table}', key_date, target, target_kind, toString(version),
              toUnixTimestamp64Micro(uploaded_at), digest
            FROM (SELECT client_id, ${id}, ${storedColumns(table)} FROM ${table} WHERE ${isAsked(table)})
            ORDER BY block, place`,
        );
        found.push(...rows);
      }
      return Map.groupBy(found, ([clientId, recordId]) => recordKey(clientId, recordId));
    });

  return {
    stored: async (records, signal) => {
      const byType = new Map<EventType, ReadonlyMap<string, readonly FoundRow[]>>();
      for (const type of EVENT_TYPES) {
        const ofType = records.filter((record) => record.type === type);
        if (ofType.length > 0) byType.set(type, await readType(type, ofType, signal));
      }
      return records.map(({ type, clientId, id }) => {
        const rows = byType.get(type)?.get(recordKey(clientId, id)) ?? [];
        return rows.map(([, , ...values]) => storedRowOf(values));
      });
    },
    sweep: noted.sweep,
  };
}
