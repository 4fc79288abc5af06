import { byEventType, type DatedKind, type ExportRecord, RECORD_KINDS } from "@conversation-export/domain";
import type { TableBuffer } from "./table-buffer.ts";

export const RECORD_DATES = "record_dates";

export const RECORD_DATE_COLUMNS: readonly string[] = ["client_id", "record", "date_created"];

const CODE_OF = byEventType((kind) => RECORD_KINDS[kind].code);

/** The length keeps a client's id from running into a record's. `client`, `id`: SQL. */
export const recordNameSql = (client: string, kind: DatedKind, id: string): string =>
  `concat(toString(length(${client})), '/', ${client}, '/${RECORD_KINDS[kind].code}/', ${id})`;

/** All dates of those records that have several. `names`: SQL, as by `recordNameSql`. */
export const movedDatesSql = (names: string): string =>
  `SELECT client_id, id, date_created FROM record_dates WHERE record GLOBAL IN (
    SELECT record FROM record_dates WHERE record GLOBAL IN (${names})
    GROUP BY record HAVING uniqExact(date_created) > 1)`;

export const encodeRecordDate = (table: TableBuffer, record: ExportRecord): void => {
  const { row } = table;
  const { clientId } = record;
  row.string(clientId);
  row.string(`${Buffer.byteLength(clientId)}/${clientId}/${CODE_OF[record.type]}/${record.id}`);
  row.uint64(record.dateCreated);
  table.endRow();
};
