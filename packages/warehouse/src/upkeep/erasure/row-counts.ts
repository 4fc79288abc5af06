import { KIND_NAMES, ownTableOf } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { WITH_HIDDEN } from "../deletion.ts";
import {
  all,
  countOf,
  type DeletingRun,
  type ErasureRun,
  keysOf,
  parametersOf,
  recordsOf,
  type Table,
  TABLES,
} from "./erasure-keys.ts";

const countOfRows = (table: Table): string => {
  const found = keysOf(table).map(
    ({ columns, key, from, condition }) => `SELECT k.client AS client, k.request AS request FROM
      (SELECT ${columns} AS key FROM ${table.table} WHERE ${condition}) AS r
      GLOBAL INNER JOIN (SELECT (${key}) AS key, request_id AS request, any(client_id) AS client ${from}
        GROUP BY key, request) AS k ON r.key = k.key`,
  );
  return `INSERT INTO erasure_keys (client_id, phase, kind, id, request_id, rows)
    SELECT client, 'deleting', 'rows', '${table.table}', request, count()
    FROM (${found.join(" UNION ALL ")}) GROUP BY client, request`;
};

/** `session`: by `forErasures`. */
export const createErasureRowCounts = ({ session }: { readonly session: Session }) => ({
  /** Masked rows too. */
  remaining: async (run: ErasureRun): Promise<Readonly<Record<string, number>>> => {
    const options = { parameters: parametersOf(run), settings: WITH_HIDDEN };
    const counts = await all(TABLES, async (table) => {
      const sql = `SELECT toString(count()) AS rows FROM ${table.table} WHERE ${recordsOf(table)}`;
      return [table.table, countOf(await session.rows("erasure.count_left", sql, options))] as const;
    });
    return Object.fromEntries(counts);
  },
  /** A row counts for each request that reaches it. */
  countRows: async (run: DeletingRun): Promise<void> => {
    const options = { parameters: parametersOf(run), settings: WITH_HIDDEN };
    await all(TABLES, (table) => session.command("erasure.count_rows", countOfRows(table), options));
  },
  /** To within a few per cent. */
  storedRecords: async (clientId: string): Promise<number> => {
    const counts = KIND_NAMES.map(ownTableOf).map(
      ({ name, id }) => `(SELECT uniq(${id}) FROM ${name} WHERE client_id = {client:String})`,
    );
    const [row] = await session.rows<{ records: string }>(
      "erasure.stored_records",
      `SELECT toString(${counts.join(" + ")}) AS records`,
      { parameters: { client: clientId } },
    );
    return Number(row?.records);
  },
});
