import { hash } from "node:crypto";
import {
  byRecordTable,
  type ExportRecord,
  RECORD_KINDS,
  type RecordTable,
  type RightRow,
} from "@conversation-export/domain";
import { ENCODINGS } from "./encodings.ts";
import { createTableBuffer, STAMP_LENGTH } from "./table-buffer.ts";

const LABEL = '"record_last_updated":"';

/** SQL for a JSON text with blanks for the stamp, which it repeats from the column `uploaded_at`. */
const withoutUpload = (column: string): string =>
  `replaceOne(${column}, concat('${LABEL}', replaceOne(toString(uploaded_at), ' ', 'T'), '+00:00"'), '${LABEL}${" ".repeat(STAMP_LENGTH)}"')`;

/** Columns whose text repeats the stamp. */
const WITH_UPLOAD: Readonly<Partial<Record<RecordTable, string>>> = {
  conversations: "head",
  messages: "record",
};

/** SQL of the columns as they are sent while no upload is filled in. */
const columnsSql = (table: RecordTable): string =>
  ENCODINGS[table].columns
    .map((column) => {
      if (column === "uploaded_at") return "toDateTime64(0, 6, 'UTC')";
      return column === WITH_UPLOAD[table] ? withoutUpload(column) : column;
    })
    .join(", ");

const DIGEST_LENGTH = 32;

/** SQL for the digest of a stored row: all but its stamp, as ClickHouse writes it. Equals `rowDigest`. */
export const rowDigestSql = (table: RecordTable): string =>
  `lower(hex(substring(SHA256(formatRow('RowBinary', ${columnsSql(table)})), 1, ${DIGEST_LENGTH / 2})))`;

const BUFFERS = byRecordTable(({ name }) => createTableBuffer(name, ENCODINGS[name].columns, 1 << 12));

const withHandoffs = (record: ExportRecord, entry: RightRow["entry"]): ExportRecord =>
  record.type === RECORD_KINDS.conversation.type && entry !== null
    ? { ...record, handoffs: [entry] }
    : record;

/** Digest of a right row, all but its stamp, as it is sent; 32 hexadecimal digits. */
export const rowDigest = ({ table, record, entry }: RightRow): string => {
  const buffer = BUFFERS[table];
  buffer.clear();
  ENCODINGS[table].encode(buffer, withHandoffs(record, entry));
  return hash("sha256", buffer.row.view(0, buffer.row.length), "hex").slice(0, DIGEST_LENGTH);
};
