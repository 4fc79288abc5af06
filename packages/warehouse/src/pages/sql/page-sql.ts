/**
 * What the SQL of all pages shares. A page is read by one statement that looks at a range of rows: from the
 * position of the page to `bound`, a date that is chosen beforehand so that the range holds somewhat more
 * than a page. The first row starts with a head line that describes the page; the records follow, joined by
 * the separator. A page without records is a row with the head line only.
 *
 * Parameters: `client`; `since` and `to` (µs); `after_date` (µs) and `after_id`, the position behind which
 * the page starts; `bound` (µs), inclusive; `size`, records of a page; `reach`, records to look at for its
 * end, larger than `size`.
 */
import { micros } from "../../session/micros-sql.ts";

/**
 * positioned: the page starts behind a position, not at the start of the window. severalDates: some records
 * of the range have rows under several dates. hiding: some records of the client are hidden until they are
 * erased. spread: the tables are distributed over several servers, so each part of the query reads their
 * current state; the parts share no snapshot.
 */
export type PageShape = {
  readonly positioned: boolean;
  readonly wholeTies: boolean;
  readonly severalDates: boolean;
  readonly hiding: boolean;
  readonly spread: boolean;
};

/** Rows of the window behind the position. */
export type RangeShape = Pick<PageShape, "positioned">;

/** SQL condition for the rows of a window behind the position, ordered by a date and an id. */
// Two comparisons instead of one of tuples, which would use only the first column of the primary key.
export function windowOf(date: string, id: string, { positioned }: RangeShape): string {
  const lower = positioned
    ? `${date} >= ${micros("after_date")} AND (${date} > ${micros("after_date")} OR ${id} > {after_id:String})`
    : `${date} >= ${micros("since")}`;
  return `client_id = {client:String} AND ${lower} AND ${date} < ${micros("to")}`;
}

/** `windowOf` up to the bound. */
export function rangeOf(date: string, id: string, shape: RangeShape): string {
  return `${windowOf(date, id, shape)} AND ${date} <= ${micros("bound")}`;
}

/** SQL condition for the dates of the rows of `rangeOf`. */
export const datesOf = (date: string, { positioned }: RangeShape): string =>
  `${date} >= ${micros(positioned ? "after_date" : "since")} AND ${date} <= ${micros("bound")}`;

/** Where the rows of a window lie, and in which order a page reads them. */
export type RowOrder = {
  readonly table: string;
  /** SQL condition for the window behind the position. */
  readonly window: string;
  readonly date: string;
  readonly id: string;
  /** Sorting columns of the table or of a projection up to the date. */
  readonly columns: string;
};

/**
 * SQL for the first `rows` rows of a window, all versions counted: date of the last in µs, their number, and
 * how many differ in date or id.
 */
export function boundOf({ table, window, date, id, columns }: RowOrder): string {
  return `SELECT concat(toString(toUnixTimestamp64Micro(max(d))), ' ', toString(count()), ' ', toString(uniqExact(k)))
    FROM (SELECT ${date} AS d, cityHash64(${date}, ${id}) AS k FROM ${table} WHERE ${window}
      ORDER BY ${columns} LIMIT {rows:UInt32})`;
}

/** What the head line says, as SQL. */
type HeadFacts = {
  /** Records of the page. */
  readonly rows: string;
  /** 1 when records are known behind the page. */
  readonly behind: string;
  /** Date of the last record. */
  readonly date: string;
  /** 1 when all records of that date are on this page or an earlier one. */
  readonly whole: string;
  /** Id of the last record. */
  readonly id: string;
  /** Rows up to the end of the page, superseded ones included. */
  readonly needed: string;
};

export const headLine = ({ rows, behind, date, whole, id, needed }: HeadFacts): string =>
  `concat(toString(${rows}), ' ', toString(${behind}), ' ', toString(toUnixTimestamp64Micro(${date})), ' ',
      toString(${whole}), ' ', hex(${id}), ' ', toString(${needed}), '\\n')`;

const headOf = (needed: string): string =>
  headLine({
    rows: "on_page",
    behind: "toUInt8(total > on_page)",
    date: "last.1",
    whole: "toUInt8(total = on_page OR behind > last.1)",
    id: "last.2",
    needed,
  });

// Whole ties: as many whole instants as fit, or, when the first instant alone exceeds a page, that instant up
// to `reach`. `through`: records up to the end of the own instant.
const IS_ON_PAGE = "place <= {size:UInt32}";
const IS_ON_PAGE_OF_TIES = "through <= {size:UInt32} OR (d = first AND place < {reach:UInt32})";

/**
 * SQL for a page out of the records of its range.
 *
 * @param from SELECT of `d`, `id` and `record` (the public JSON), at most `reach` rows from the start of the
 * range
 * @param needed SQL for what the head line tells as needed, of `on_page` and `total`, the records of the page and of
 * the range
 */
export function pageOf(from: string, wholeTies: boolean, needed = "on_page"): string {
  const order = "ORDER BY d, id";
  const ties = wholeTies
    ? ", count() OVER (ORDER BY d RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS through, min(d) OVER () AS first"
    : "";
  return `SELECT concat(if(place = 1, ${headOf(needed)}, ''), record) FROM (
    SELECT record, place, total, on_page, last, behind FROM (
      SELECT record, place, is_on_page, count() OVER () AS total, countIf(is_on_page) OVER () AS on_page,
        maxIf((d, id), is_on_page) OVER () AS last, minIf(d, NOT is_on_page) OVER () AS behind
      FROM (SELECT d, id, record, place, ${wholeTies ? IS_ON_PAGE_OF_TIES : IS_ON_PAGE} AS is_on_page
        FROM (SELECT d, id, record, row_number() OVER (${order}) AS place${ties} FROM (${from}))))
    WHERE is_on_page ORDER BY place WITH FILL FROM 1 TO 2) FORMAT CustomSeparated`;
}
