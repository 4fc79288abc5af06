import {
  type ConversationRecord,
  type EventType,
  type MessageRecord,
  RECORD_KINDS,
} from "@conversation-export/domain";
import type { TableBuffer } from "./table-buffer.ts";

/** The table of the dates under which each record has rows. */
export const RECORD_DATES = "record_dates";

export const RECORD_DATE_COLUMNS: readonly string[] = ["client_id", "record", "date_created"];

/** Kinds of records with a date in their key, with their code in the table. */
const CODES = { conversation: "c", message: "m" } as const;
export type DatedKind = keyof typeof CODES;
export const DATED_KINDS = Object.keys(CODES) as readonly DatedKind[];

/** undefined: records of the type have no date in their key. */
export const datedKindOf = (type: EventType): DatedKind | undefined =>
  DATED_KINDS.find((kind) => RECORD_KINDS[kind].type === type);

/**
 * SQL for the name of a record in the table. Names of one client and kind stand together, in the order of
 * their ids. The length keeps a client's id from running into a record's.
 *
 * @param client SQL of the client id
 * @param id SQL of the record's id
 */
export const recordNameSql = (client: string, kind: DatedKind, id: string): string =>
  `concat(toString(length(${client})), '/', ${client}, '/${CODES[kind]}/', ${id})`;

/** Writes the date of a record. */
export const encodeRecordDate = (table: TableBuffer, record: ConversationRecord | MessageRecord): void => {
  const { row } = table;
  const { clientId } = record;
  const code = record.type === RECORD_KINDS.message.type ? CODES.message : CODES.conversation;
  row.string(clientId);
  row.string(`${Buffer.byteLength(clientId)}/${clientId}/${code}/${record.id}`);
  row.uint64(record.dateCreated);
  table.endRow();
};
