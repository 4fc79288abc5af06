/**
 * The SQL of pages whose records are found by their keys first: rows that are superseded, or that lie far
 * apart, are looked at without their texts. `found`: sorted keys in reach, tuples that begin with (date, id).
 */
import { headLine } from "./page-sql.ts";

const PLAIN_END = "least(length(keys), {size:UInt32})";
// As many whole instants as fit, or, when the first instant alone exceeds a page, that instant up to `reach`.
const WHOLE_TIE_END = `multiIf(
    length(keys) <= {size:UInt32}, length(keys),
    keys[{size:UInt32} + 1].1 != keys[{size:UInt32}].1, toUInt64({size:UInt32}),
    keys[{size:UInt32} + 1].1 != keys[1].1, arrayCount(k -> k.1 < keys[{size:UInt32} + 1].1, keys),
    arrayCount(k -> k.1 = keys[1].1, keys) < length(keys), arrayCount(k -> k.1 = keys[1].1, keys),
    length(keys) < {reach:UInt32}, length(keys),
    toUInt64({reach:UInt32} - 1))`;

/**
 * SQL that defines `page` from `found`: (records, date and id of the last, 1 when all records of its instant
 * are on this page or an earlier one, 1 when keys lie behind it).
 */
export function pageOfFound(wholeTies: boolean): string {
  return `(SELECT (n, keys[n].1, keys[n].2,
      toUInt8(n = length(keys) OR keys[n + 1].1 != keys[n].1), toUInt8(n < length(keys)))
    FROM (SELECT keys, ${wholeTies ? WHOLE_TIE_END : PLAIN_END} AS n
      FROM (SELECT groupArray((k.1, k.2)) AS keys FROM (SELECT arrayJoin(found) AS k)))) AS page`;
}

/** SELECT of columns of the keys that belong to the page, as `k`. */
export function keysOfPage(columns: string): string {
  return `SELECT ${columns} FROM (SELECT arrayJoin(found) AS k) WHERE k.1 < page.2 OR (k.1 = page.2 AND k.2 <= page.3)`;
}

/**
 * SELECT of the page; without records a row with the head line only.
 *
 * @param from what follows FROM: the records of the page in order
 * @param needed SQL for the rows up to the end of the page
 */
// Rows are numbered after the sort, on a single stream, so that row 0 is the first record.
export function outputOfFound(record: string, from: string, needed = "page.1"): string {
  const head = headLine({
    rows: "page.1",
    behind: "page.5",
    date: "page.2",
    whole: "page.4",
    id: "page.3",
    needed,
  });
  return `SELECT concat(if(rowNumberInAllBlocks() = 0, ${head}, ''), record)
    FROM (SELECT '' AS record WHERE page.1 = 0 UNION ALL SELECT ${record} AS record FROM ${from})
    FORMAT CustomSeparated`;
}
