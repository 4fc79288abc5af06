import { CHANGES } from "../tables/changes.ts";
import { RECORD_DATES } from "../tables/record-dates.ts";
import { keysOf, type Table } from "./erasure/erasure-keys.ts";
import { EXPIRING, isOlder, SETTLED } from "./expired-records.ts";

/**
 * In the order of deletion: a readable record before its dependent rows, the dates of records behind all
 * rows, and the landed events of end users before the end users themselves, so that the next run can finish
 * one that died. The entries of changes are last: those of the deletions are made from them.
 */
export const RETENTION_TABLES = [
  "conversations",
  "conversation_updates",
  "handoffs",
  "messages",
  RECORD_DATES,
  "landing",
  "end_users",
  CHANGES,
] as const;
export type RetentionTable = (typeof RETENTION_TABLES)[number];

/**
 * Tables with rows under former dates of expired records, in the order of their deletion. These rows go first: if
 * the live row went before them, one of them would become the live one. The row that names a record's live date is
 * last, so that a run after one that broke off finds the rest.
 */
export const STALE_TABLES: readonly RetentionTable[] = [
  "landing",
  "handoffs",
  "conversation_updates",
  "conversations",
  "messages",
];

const tableOf = (name: RetentionTable): Table => {
  const table = EXPIRING.find((one) => one.table === name);
  if (table === undefined) throw new TypeError(`erasures know no table ${name}`);
  return table;
};

/** When a row came: entries and dates that came shortly before may belong to rows that are on their way. */
const CAME: Readonly<Partial<Record<RetentionTable, string>>> = {
  record_dates: "added_at",
  changes: "stored_at",
};
const BEGUN = "fromUnixTimestamp64Micro({begun:Int64}, 'UTC')";

/** Which rows: of former dates of expired records, of all of them, or also those that stay for now. */
export type Which = "stale" | "expired" | "told";

/**
 * SQL condition for rows of expired records. What came behind the collection of its key stays. Of records with
 * several dates, and of end users, also what came shortly before.
 */
export const isExpired = (name: RetentionTable, which: Which, isIn: "IN" | "GLOBAL IN"): string => {
  const came = CAME[name];
  const rowsOf = (states: readonly string[], isSettled: boolean) =>
    keysOf(tableOf(name), states).map(({ kind, only, columns, key, from }) => {
      const before = isSettled || kind === "end_user" ? SETTLED : BEGUN;
      const bound = which === "told" ? "1" : `${came ?? "uploaded_at"} < ${before}`;
      return `(${only} AND ${bound} AND ${columns} ${isIn} (SELECT ${key} ${from}))`;
    });
  if (which === "stale") return rowsOf(["stale"], true).join(" OR ");
  if (came !== undefined) return rowsOf(["record", "moved", "stale"], true).join(" OR ");
  // By date too: a newer update that arrived meanwhile stays.
  if (name === "end_users") return `${isOlder("date_updated")} AND ${rowsOf(["record"], true).join()}`;
  return [...rowsOf(["record"], false), ...rowsOf(["moved", "stale"], true)].join(" OR ");
};
