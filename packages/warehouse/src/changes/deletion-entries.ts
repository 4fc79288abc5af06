import { DATED_KINDS, type WriteTicket } from "@conversation-export/domain";
import type { Session, StatementName } from "../session/session.ts";
import { recordNameSql } from "../tables/record-dates.ts";
import { fence, fenced, uploadPrefix } from "../write/write-ticket.ts";

/** Repeats `work` with another ticket if that is stale, or ClickHouse was away. */
export type RunUpload = (work: (ticket: WriteTicket) => Promise<void>, signal?: AbortSignal) => Promise<void>;

/** µs. */
const SPREAD = 1_000_000;

/**
 * The deletion must have ended; entries may repeat. `source`: client_id, kind, id, date_created of the key.
 * @throws WarehouseError
 */
export const noteDeleted = (
  { session, runUpload }: { readonly session: Session; readonly runUpload: RunUpload },
  {
    name,
    source,
    parameters,
    signal,
  }: {
    readonly name: StatementName;
    readonly source: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<void> => {
  const given = `SELECT client_id, toString(kind) AS kind, id, date_created FROM (${source})`;
  const known = DATED_KINDS.map(
    (kind) => `SELECT client_id, '${kind}' AS kind, id, date_created FROM record_dates
        WHERE record GLOBAL IN (SELECT ${recordNameSql("s.client_id", kind, "s.id")} FROM (${source}) AS s
          WHERE toString(s.kind) = '${kind}')`,
  );
  const insert = (ticket: WriteTicket): Promise<void> =>
    session.command(
      name,
      `INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted)
      SELECT client_id, kind,
        fromUnixTimestamp64Micro({uploaded_at:Int64} + toInt64(rowNumberInAllBlocks() % ${SPREAD}), 'UTC'),
        id, date_created, true
      FROM (SELECT DISTINCT client_id, kind, id, date_created FROM (${[given, ...known].join(" UNION ALL ")}))
      WHERE ${fence(ticket)}`,
      {
        parameters: { ...parameters, uploaded_at: ticket.stamp },
        settings: { ...fenced(name), async_insert: 0, max_threads: 1 },
        queryPrefix: uploadPrefix(ticket.stamp),
        signal,
      },
    );
  return runUpload(insert, signal);
};
