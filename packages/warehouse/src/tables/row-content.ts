import type { ConversationRecord, MessageRecord, RightRow } from "@conversation-export/domain";

/**
 * Receives the values of columns, one call per column. `RowBinary` has these methods too and ignores the
 * column names, so that encoders need no lookup by name.
 */
export type ColumnWriter = {
  string(value: string, column: string): void;
  nullableString(value: string | null, column: string): void;
  nullableUint8(value: number | boolean | null, column: string): void;
  nullableFloat64(value: number | null, column: string): void;
};

/** Receives the content of a row: all but its key, version and upload instant. */
export type ContentWriter = ColumnWriter & {
  micros(value: number, column: string): void;
  strings(value: readonly string[], column: string): void;
  /** A text, and the SQL expression that computes the same text from a stored row. */
  text(value: string, sql: string): void;
};

/** Content of a table's rows as a list of texts or NULL, both as SQL and for a right row. */
export type RowContent = {
  readonly sql: readonly string[];
  texts(row: RightRow): readonly (string | null)[];
};

/** Placeholder for a record where only the names of columns are needed. */
const BLANK = { version: {}, columns: {} } as never;

/** Names of the columns that `write` writes, in its order. */
export const columnNames = (write: (to: ColumnWriter, from: never) => void): readonly string[] => {
  const names: string[] = [];
  const note = (_: unknown, column: string): void => {
    names.push(column);
  };
  write({ string: note, nullableString: note, nullableUint8: note, nullableFloat64: note }, BLANK);
  return names;
};

/** The text behind its length, so that different lists of texts are never equal when joined. */
export const prefixed = (text: string): string => `${Buffer.byteLength(text)}:${text}`;
export const prefixedSql = (sql: string): string => `concat(toString(length(${sql})), ':', ${sql})`;

const view = new DataView(new ArrayBuffer(8));
const bitsOf = (value: number): bigint => {
  view.setFloat64(0, value);
  return view.getBigUint64(0);
};

const sqlWriter = (to: string[]): ContentWriter => {
  const asText = (_: unknown, column: string): void => {
    to.push(`toString(${column})`);
  };
  return {
    string: asText,
    nullableString: asText,
    nullableUint8: (_, column) => to.push(`toString(toUInt8(${column}))`),
    nullableFloat64: (_, column) =>
      to.push(`if(isNull(${column}), NULL, toString(reinterpretAsUInt64(assumeNotNull(${column}))))`),
    micros: (_, column) => to.push(`toString(toUnixTimestamp64Micro(${column}))`),
    strings: (_, column) => to.push(`arrayStringConcat(arrayMap(x -> ${prefixedSql("x")}, ${column}))`),
    text: (_, sql) => to.push(sql),
  };
};

const textWriter = (to: (string | null)[]): ContentWriter => ({
  string: (value) => to.push(value),
  nullableString: (value) => to.push(value),
  nullableUint8: (value) => to.push(value === null ? null : String(Number(value))),
  nullableFloat64: (value) => to.push(value === null ? null : String(bitsOf(value))),
  micros: (value) => to.push(String(value)),
  strings: (value) => to.push(value.map(prefixed).join("")),
  text: (value) => to.push(value),
});

/**
 * Describes the content of a table's rows.
 *
 * @param read gives the part of a right row that `write` takes; throws for a row of another table
 */
export const rowContent = <T>(
  read: (row: RightRow) => T,
  write: (to: ContentWriter, from: T) => void,
): RowContent => {
  const sql: string[] = [];
  write(sqlWriter(sql), BLANK);
  return {
    sql,
    texts: (row) => {
      const texts: (string | null)[] = [];
      write(textWriter(texts), read(row));
      return texts;
    },
  };
};

/** @throws TypeError always */
export const wrongType = (): never => {
  throw new TypeError("a row of another type of record");
};

const LABEL = '"record_last_updated":"';

/** SQL for a JSON text without the upload instant, which it repeats from the column `uploaded_at`. */
export const withoutUpload = (column: string): string =>
  `replaceOne(${column}, concat('${LABEL}', replaceOne(toString(uploaded_at), ' ', 'T'), '+00:00"'), '${LABEL}"')`;

/** The JSON text of a record without the upload instant, equal to `withoutUpload` of its row. */
export const textWithoutUpload = ({
  beforeUpload,
  afterUpload,
}: ConversationRecord | MessageRecord): string => beforeUpload + afterUpload;
