/** `after_date`, `end_date`: µs; with an empty `end_id`, `end_date` is exclusive. */
import { micros } from "../../session/micros-sql.ts";
import { unexpectedAnswer } from "../../session/warehouse-error.ts";
import type { PagePosition } from "../page.ts";
import { MARK } from "../page-stream.ts";
import type { Conditions } from "./identity-sql.ts";

/** `sharded`: query parts share no snapshot. */
export type ReadShape = Conditions & { readonly sharded: boolean };

// NOT (… AND …) costs a third less than … OR …; tuples would use only the first key column.
export const rangeOf = (date: string, id: string): string =>
  `client_id = {client:String}
      AND ${date} >= ${micros("after_date")} AND NOT (${date} = ${micros("after_date")} AND ${id} <= {after_id:String})
      AND ${date} <= ${micros("end_date")} AND NOT (${date} = ${micros("end_date")} AND ${id} > {end_id:String})`;

/** Perhaps also the instant after `rangeOf`. */
export const datesOf = (date: string): string =>
  `${date} >= ${micros("after_date")} AND ${date} <= ${micros("end_date")}`;

export type RangedRows = {
  readonly table: string;
  readonly range: string;
  readonly date: string;
  readonly id: string;
  /** Sorting columns of the table or a projection, up to the id. */
  readonly columns: string;
  /** `i`: the id; absent: date and id. */
  readonly key?: "i";
};

/** One thread keeps rows in order. */
export const endOf = ({ table, range, date, id, columns, key }: RangedRows): string =>
  `SELECT count(), toUnixTimestamp64Micro(any(d)), toUnixTimestamp64Micro(anyLast(d)), hex(anyLast(i))
    FROM (SELECT ${date} AS d, ${id} AS i FROM ${table} WHERE ${range} ORDER BY ${columns} LIMIT 1 BY ${key ?? "d, i"} LIMIT {keys:UInt32})`;

export type FirstKeys = {
  readonly keys: number;
  /** µs. */
  readonly first: number;
  readonly last: PagePosition;
};

/** @throws WarehouseError */
export const endOfAnswer = (answer: string): FirstKeys => {
  const [, keys, first, date, id] = /^(\d+)\t(\d+)\t(\d+)\t([\dA-F]*)\n$/.exec(answer) ?? [];
  if (id === undefined) throw unexpectedAnswer();
  const last = { date: Number(date), id: Buffer.from(id, "hex").toString() };
  return { keys: Number(keys), first: Number(first), last };
};

export const RECORD_COLUMN = ["record"] as const;
export const CONVERSATION_COLUMNS = ["head", "entries", "tail"] as const;

export const FIRST_ROWS = "LIMIT {size:UInt32} + 1";

/** `from`: in order. */
// Rows are numbered after the sort, on a single thread.
export const pageRows = (columns: readonly string[], from: string): string =>
  `SELECT ${columns.join(", ")}, if(rowNumberInAllBlocks() + 1 >= {size:UInt32},
      concat('${MARK}', toString(toUnixTimestamp64Micro(d)), ' ', hex(id), '${MARK}'), '') AS key
    FROM (${from}) FORMAT Template`;

export const wholeInstantsOf = (from: string): string =>
  `SELECT count(), toUnixTimestamp64Micro(max(d)), toUnixTimestamp64Micro(maxIf(d, d < top))
    FROM (SELECT d, max(d) OVER () AS top FROM (${from}))`;

export type Instants = { readonly rows: number; readonly last: number; readonly before: number };

/** @throws WarehouseError */
export const instantsOfAnswer = (answer: string): Instants => {
  const [, rows, last, before] = /^(\d+)\t(\d+)\t(\d+)\n$/.exec(answer) ?? [];
  if (before === undefined) throw unexpectedAnswer();
  return { rows: Number(rows), last: Number(last), before: Number(before) };
};
