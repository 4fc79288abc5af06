import {
  ownTableOf,
  READABLE_FIRST,
  RECORD_TABLES,
  type RecordTable,
  TABLE_FACTS,
  UNDATED_KINDS,
} from "@conversation-export/domain";
import { CHANGES } from "../tables/changes.ts";
import type { EncodedTable } from "../tables/encodings.ts";
import { RECORD_DATES } from "../tables/record-dates.ts";
import { recordsOf, SETTLED, type Table } from "./erasure/erasure-keys.ts";
import { EXPIRING, expiryColumnOf, isOlder } from "./expired-records.ts";

const isDated = (table: RecordTable): boolean => TABLE_FACTS[table].keyDate !== null;
const READABLE = READABLE_FIRST.map(({ name }) => name);

export type RetentionTable = EncodedTable | "landing";
/**
 * In the order of deletion: readable rows before dependent ones, then their dates; events of end users before their
 * rows; `changes` last, since deletions are published from it. So the next run finishes a dead one.
 */
export const RETENTION_TABLES: readonly RetentionTable[] = [
  ...READABLE.filter(isDated),
  RECORD_DATES,
  "landing",
  ...READABLE.filter((table) => !isDated(table)),
  CHANGES,
];

/**
 * Former dates go before the live row: else one of them would become live. Rows that name the live date are last, so
 * that the next run finds what a dead one left.
 */
export const STALE_TABLES: readonly RetentionTable[] = ["landing", ...RECORD_TABLES.filter(isDated)];

const tableOf = (name: RetentionTable): Table => {
  const table = EXPIRING.find((one) => one.table === name);
  if (table === undefined) throw new TypeError(`erasures know no table ${name}`);
  return table;
};

/** When a row came, where `uploaded_at` does not say it. */
const CAME: Readonly<Partial<Record<RetentionTable, string>>> = {
  record_dates: "added_at",
  changes: "stored_at",
};

const EXPIRY_COLUMN: ReadonlyMap<string, string> = new Map(
  UNDATED_KINDS.map((kind) => [ownTableOf(kind).name, expiryColumnOf(kind)]),
);

/** `stale`: under former dates; `published`: also what stays for now. */
export type Which = "stale" | "expired" | "published";

const statesOf = (name: RetentionTable, which: Which): readonly string[] => {
  if (which === "stale") return ["stale"];
  return ["record", "moved", "stale", ...(name === CHANGES ? ["gone"] : [])];
};

export const kindsOf = (name: RetentionTable, which: Which): readonly string[] =>
  tableOf(name).records.flatMap(({ kind }) => statesOf(name, which).map((state) => `${kind} ${state}`));

/** Later rows stay until the next run: their batch may be in flight. */
export const isExpired = (name: RetentionTable, which: Which, isIn: "IN" | "GLOBAL IN"): string => {
  const bound = which === "published" ? "1" : `${CAME[name] ?? "uploaded_at"} < ${SETTLED}`;
  const rows = recordsOf(tableOf(name), isIn, statesOf(name, which));
  // By date too: a newer update that arrived meanwhile stays.
  const date = EXPIRY_COLUMN.get(name);
  const dated = date === undefined ? "" : `${isOlder(date)} AND `;
  return `${dated}${bound} AND (${rows})`;
};
