import { hash } from "node:crypto";
import {
  byRecordTable,
  type ExportRecord,
  ownTableOf,
  RECORD_KINDS,
  type RecordTable,
  type RightRow,
} from "@conversation-export/domain";
import { ENCODINGS } from "./encodings.ts";
import { createTableBuffer, STAMP_LENGTH } from "./table-buffer.ts";

const UPLOAD_FIELD = "record_last_updated";
const LABEL = `"${UPLOAD_FIELD}":"`;

/** Blanks for the stamp that the text repeats. */
const withoutUpload = (column: string): string =>
  `replaceOne(${column}, concat('${LABEL}', replaceOne(toString(uploaded_at), ' ', 'T'), '+00:00"'), '${LABEL}${" ".repeat(STAMP_LENGTH)}"')`;

const WITH_UPLOAD = byRecordTable(({ name, kind }) => {
  const { form, texts } = RECORD_KINDS[kind];
  const isStamped = form.fields.some(([field]) => field === UPLOAD_FIELD);
  return isStamped && name === ownTableOf(kind).name ? texts[0] : undefined;
});

const columnsSql = (table: RecordTable): string =>
  ENCODINGS[table].columns
    .map((column) => {
      if (column === "uploaded_at") return "toDateTime64(0, 6, 'UTC')";
      return column === WITH_UPLOAD[table] ? withoutUpload(column) : column;
    })
    .join(", ");

const DIGEST_LENGTH = 32;

/** Must equal `rowDigest`. */
export const rowDigestSql = (table: RecordTable): string =>
  `lower(hex(substring(SHA256(formatRow('RowBinary', ${columnsSql(table)})), 1, ${DIGEST_LENGTH / 2})))`;

const BUFFERS = byRecordTable(({ name }) => createTableBuffer(name, ENCODINGS[name].columns, 1 << 12));

const withHandoffs = (record: ExportRecord, entry: RightRow["entry"]): ExportRecord =>
  entry === null ? record : { ...record, handoffs: [entry] };

/** Without the stamp; 32 hexadecimal digits. */
export const rowDigest = ({ table, record, entry }: RightRow): string => {
  const buffer = BUFFERS[table];
  buffer.clear();
  ENCODINGS[table].encode(buffer, withHandoffs(record, entry));
  return hash("sha256", buffer.row.view(0, buffer.row.length), "hex").slice(0, DIGEST_LENGTH);
};
