import { type EventType, type StoredRow, TABLE_FACTS, TABLES_OF } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { NOTED_RECORDS, type RecordName } from "../../tables/record-keys.ts";
import { type Alive, createJobKeys } from "../job-keys.ts";
import { storedColumns, storedRowOf, type StoredValues } from "./stored-rows.ts";

/**
 * Reads the stored rows of a few records, which it finds by reading whole tables.
 *
 * @throws WarehouseError from every method
 */
export type RecordReader = {
  note(run: string, records: readonly RecordName[], signal: AbortSignal): Promise<void>;
  /**
   * All rows of the noted records by `recordKey`; rows of equal key and version in the order of insertion.
   */
  stored(
    run: string,
    type: EventType,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly StoredRow[]>>;
  /** Removes the records noted under `run`. */
  forget(run: string): Promise<void>;
  /** Removes what runs `<prefix><holder>/…` noted whose holder is not alive. */
  forgetDead(prefix: string, alive: Alive): Promise<void>;
};

/** Key of a record in the result of `stored`. */
export const recordKey = (clientId: string, id: string): string => `${clientId}\u0000${id}`;

/** @param deps.session of a user that may read, insert keys and delete them */
export function createRecordReader(deps: { readonly session: Session }): RecordReader {
  const session = deps.session.with({
    timeoutMs: 600_000,
    // A projection would still show rows that are masked in its table.
    settings: { async_insert: 0, optimize_use_projections: 0 },
  });
  const keys = createJobKeys({ session });

  return {
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
        const { id } = TABLE_FACTS[table];
        const chunks = session.chunks<[client: string, id: string, ...StoredValues]>(
          "backfill.stored",
          `SELECT client_id, ${id}, '${table}', key_date, target, target_kind, toString(version),
              toUnixTimestamp64Micro(uploaded_at), digest
            FROM (SELECT client_id, ${id}, ${storedColumns(table)} FROM ${table}
              WHERE (client_id, ${id}) IN (${NOTED_RECORDS}))
            ORDER BY block, place`,
          { parameters: { run, type }, signal },
        );
        for await (const chunk of chunks) {
          for (const [clientId, recordId, ...values] of chunk) {
            const name = recordKey(clientId, recordId);
            const row = storedRowOf(values);
            const known = records.get(name);
            if (known === undefined) records.set(name, [row]);
            else known.push(row);
          }
        }
      }
      return records;
    },
    forget: keys.forget,
    forgetDead: (prefix, alive) => keys.forgetDead(prefix, null, alive),
  };
}
