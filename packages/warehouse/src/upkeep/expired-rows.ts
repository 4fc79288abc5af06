import { READABLE_FIRST, RECORD_TABLES, type RecordTable, TABLE_FACTS } from "@conversation-export/domain";
import { CHANGES } from "../tables/changes.ts";
import type { EncodedTable } from "../tables/encodings.ts";
import { RECORD_DATES } from "../tables/record-dates.ts";
import { keysOf, type Table } from "./erasure/erasure-keys.ts";
import { EXPIRING, isOlder, SETTLED } from "./expired-records.ts";

const isDated = (table: RecordTable): boolean => TABLE_FACTS[table].keyDate !== null;
const READABLE = READABLE_FIRST.map(({ name }) => name);

export type RetentionTable = EncodedTable | "landing";
/**
 * In the order of deletion: a readable record before its dependent rows, the dates of records behind all
 * rows, and the landed events of records without a date, such as end users, before these, so that the next run can finish
 * one that died. The entries of changes are last: those of the deletions are made from them.
 */
export const RETENTION_TABLES: readonly RetentionTable[] = [
  ...READABLE.filter(isDated),
  RECORD_DATES,
  "landing",
  ...READABLE.filter((table) => !isDated(table)),
  CHANGES,
];

/**
 * Tables with rows under former dates of expired records, in the order of their deletion. These rows go first: if
 * the live row went before them, one of them would become the live one. The row that names a record's live date is
 * last, so that a run after one that broke off finds the rest.
 */
export const STALE_TABLES: readonly RetentionTable[] = ["landing", ...RECORD_TABLES.filter(isDated)];

const tableOf = (name: RetentionTable): Table => {
  const table = EXPIRING.find((one) => one.table === name);
  if (table === undefined) throw new TypeError(`erasures know no table ${name}`);
  return table;
};

/** When a row came. */
const CAME: Readonly<Partial<Record<RetentionTable, string>>> = {
  record_dates: "added_at",
  changes: "stored_at",
};

/** Which rows: of former dates of expired records, of all of them, or also those that stay for now. */
export type Which = "stale" | "expired" | "published";

/** The keys by which rows of a table are removed. End users without any row have entries of changes only. */
const statesOf = (name: RetentionTable, which: Which): readonly string[] => {
  if (which === "stale") return ["stale"];
  return ["record", "moved", "stale", ...(name === CHANGES ? ["gone"] : [])];
};

/** Kinds of these keys. */
export const kindsOf = (name: RetentionTable, which: Which): readonly string[] =>
  tableOf(name).records.flatMap(({ kind }) => statesOf(name, which).map((state) => `${kind} ${state}`));

/**
 * SQL condition for rows of expired records. What came shortly before the run, or later, stays until the next one: it
 * may belong to a batch that is on its way.
 */
export const isExpired = (name: RetentionTable, which: Which, isIn: "IN" | "GLOBAL IN"): string => {
  const bound = which === "published" ? "1" : `${CAME[name] ?? "uploaded_at"} < ${SETTLED}`;
  const rows = keysOf(tableOf(name), statesOf(name, which))
    .map(({ only, columns, key, from }) => `(${only} AND ${columns} ${isIn} (SELECT ${key} ${from}))`)
    .join(" OR ");
  // By date too: a newer update that arrived meanwhile stays.
  const dated = name === "end_users" ? `${isOlder("date_updated")} AND ` : "";
  return `${dated}${bound} AND (${rows})`;
};
