/**
 * What the SQL of all lists shares: ranges of rows from behind a position up to an end. Parameters: `client`;
 * `after_date` (µs), `after_id`; `end_date` (µs), `end_id`, or with an empty `end_id` the first instant not
 * read; `size`.
 */
import { micros } from "../../session/micros-sql.ts";
import { unexpectedAnswer } from "../../session/warehouse-error.ts";
import type { PagePosition } from "../page.ts";
import { MARK } from "../page-stream.ts";

/**
 * hasMoved: the range has moved records. hasErased: the client has rows pending deletion. sharded: sharded
 * tables, whose query parts share no snapshot.
 */
export type ReadShape = {
  readonly hasMoved: boolean;
  readonly hasErased: boolean;
  readonly sharded: boolean;
};

/** SQL condition for the rows of a range, ordered by a date and an id. */
// NOT (… AND …) costs a third less than … OR …; tuples would use only the first key column.
export const rangeOf = (date: string, id: string): string =>
  `client_id = {client:String}
      AND ${date} >= ${micros("after_date")} AND NOT (${date} = ${micros("after_date")} AND ${id} <= {after_id:String})
      AND ${date} <= ${micros("end_date")} AND NOT (${date} = ${micros("end_date")} AND ${id} > {end_id:String})`;

/** SQL condition for the dates of the rows of `rangeOf`, and perhaps the instant behind them. */
export const datesOf = (date: string): string =>
  `${date} >= ${micros("after_date")} AND ${date} <= ${micros("end_date")}`;

/** Where the rows of a range lie. */
export type RangedRows = {
  readonly table: string;
  /** SQL condition for the range. */
  readonly range: string;
  readonly date: string;
  readonly id: string;
  /** Sorting columns of the table or of a projection, up to the id. */
  readonly columns: string;
  /** What one key is, of `d` (the date) and `i` (the id): both, or the id alone. */
  readonly key?: "i";
};

/**
 * SQL for the first `keys` keys of a range; see `endOfAnswer`. Single-threaded, which keeps rows in order.
 */
export const endOf = ({ table, range, date, id, columns, key }: RangedRows): string =>
  `SELECT count(), toUnixTimestamp64Micro(any(d)), toUnixTimestamp64Micro(anyLast(d)), hex(anyLast(i))
    FROM (SELECT ${date} AS d, ${id} AS i FROM ${table} WHERE ${range} ORDER BY ${columns} LIMIT 1 BY ${key ?? "d, i"} LIMIT {keys:UInt32})`;

/** What `endOf` finds. */
export type FirstKeys = {
  readonly keys: number;
  /** Date of the first key, µs. */
  readonly first: number;
  readonly last: PagePosition;
};

/** Parses the answer to the statement of `endOf`. @throws WarehouseError when it is none */
export const endOfAnswer = (answer: string): FirstKeys => {
  const [, keys, first, date, id] = /^(\d+)\t(\d+)\t(\d+)\t([\dA-F]*)\n$/.exec(answer) ?? [];
  if (id === undefined) throw unexpectedAnswer();
  const last = { date: Number(date), id: Buffer.from(id, "hex").toString() };
  return { keys: Number(keys), first: Number(first), last };
};

/** Columns of text that make up a record. */
export const RECORD_COLUMN = ["record"] as const;
export const CONVERSATION_COLUMNS = ["head", "entries", "tail"] as const;

/** SQL clause for the rows of a page and one more. */
export const FIRST_ROWS = "LIMIT {size:UInt32} + 1";

/**
 * SELECT of the rows of a page; the last two have a key behind their text when the page is full.
 * @param from SELECT of `d` (the date), `id` and the columns, in order, `FIRST_ROWS` at most
 */
// Rows are numbered behind the sort, on a single thread.
export const pageRows = (columns: readonly string[], from: string): string =>
  `SELECT ${columns.join(", ")}, if(rowNumberInAllBlocks() + 1 >= {size:UInt32},
      concat('${MARK}', toString(toUnixTimestamp64Micro(d)), ' ', hex(id), '${MARK}'), '') AS key
    FROM (${from}) FORMAT Template`;

/**
 * SQL for the end of the last instant that fits a page; see `instantsOfAnswer`.
 * @param from SELECT of `d`, the dates of the records in order, `FIRST_ROWS` at most
 */
export const wholeInstantsOf = (from: string): string =>
  `SELECT count(), toUnixTimestamp64Micro(max(d)), toUnixTimestamp64Micro(maxIf(d, d < top))
    FROM (SELECT d, max(d) OVER () AS top FROM (${from}))`;

/** What `wholeInstantsOf` finds. */
export type Instants = { readonly rows: number; readonly last: number; readonly before: number };

/** Parses the answer to the statement of `wholeInstantsOf`. @throws WarehouseError when it is none */
export const instantsOfAnswer = (answer: string): Instants => {
  const [, rows, last, before] = /^(\d+)\t(\d+)\t(\d+)\n$/.exec(answer) ?? [];
  if (before === undefined) throw unexpectedAnswer();
  return { rows: Number(rows), last: Number(last), before: Number(before) };
};
