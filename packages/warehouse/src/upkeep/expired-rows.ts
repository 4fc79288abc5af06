import { RECORD_KINDS, type RecordTable, TABLE_FACTS } from "@conversation-export/domain";
import { CHANGES } from "../tables/changes.ts";
import { DATED_KINDS, type DatedKind, RECORD_DATES, recordNameSql } from "../tables/record-dates.ts";
import { isExpired, isOlder, isStale, SETTLED } from "./expired-records.ts";

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

const KEYS = "(SELECT client_id, id FROM job_keys WHERE run_id = {run:String} AND kind = 'end_user')";

const ofTable = (table: RecordTable, kind: DatedKind): string =>
  isExpired(kind, { ...TABLE_FACTS[table], settled: `uploaded_at < ${SETTLED}` });
const ofKind = (kind: DatedKind, names: Omit<Parameters<typeof isExpired>[1], "created">): string =>
  isExpired(kind, { ...names, created: "date_created" });

const END_USER = RECORD_KINDS.end_user.type;
const LANDED = DATED_KINDS.map(
  (kind) =>
    `(type = '${RECORD_KINDS[kind].type}' AND ${ofKind(kind, { id: "record_id", settled: `uploaded_at < ${SETTLED}` })})`,
).join(" OR ");
// Dates that were added shortly before may belong to rows that are on their way.
const DATES = DATED_KINDS.map((kind) => {
  // Not by the alias columns of the table: a mutation of an older ClickHouse (25.8) does not find them.
  const before = recordNameSql("client_id", kind, "''");
  const id = `substring(record, length(${before}) + 1)`;
  return `(startsWith(record, ${before}) AND ${ofKind(kind, { id, settled: "1" })})`;
}).join(" OR ");
/** SQL: an entry of changes that told of a record which has expired. */
export const TOLD = `NOT deleted AND (${[
  ...DATED_KINDS.map((kind) => `(kind = '${kind}' AND ${ofKind(kind, { id: "id", settled: "1" })})`),
  `(kind = 'end_user' AND (client_id, id) IN ${KEYS})`,
].join(" OR ")})`;
/** SQL by table: the row belongs to an expired record and may be removed. */
export const CONDITIONS: Readonly<Record<RetentionTable, string>> = {
  conversations: ofTable("conversations", "conversation"),
  conversation_updates: ofTable("conversation_updates", "conversation"),
  handoffs: ofTable("handoffs", "conversation"),
  messages: ofTable("messages", "message"),
  record_dates: `added_at < ${SETTLED} AND (${DATES})`,
  landing: `${LANDED}
    OR (type = '${END_USER}' AND (client_id, record_id) IN ${KEYS} AND uploaded_at < ${SETTLED})`,
  // Entries that came shortly before may belong to rows that are on their way.
  changes: `stored_at < ${SETTLED} AND ${TOLD}`,
  // By date too: a newer update that arrived meanwhile stays.
  end_users: `${isOlder("date_updated")} AND (client_id, end_user_id) IN ${KEYS}`,
};

/**
 * Stale rows of expired records, in the order of their deletion: the row that names a record's live date
 * last, so that a run after one that broke off finds the rest.
 */
export const STALE: readonly { readonly table: RetentionTable; readonly condition: string }[] = [
  {
    table: "landing",
    condition: DATED_KINDS.map(
      (kind) =>
        `(type = '${RECORD_KINDS[kind].type}' AND ${isStale(kind, { id: "record_id", created: "date_created" })})`,
    ).join(" OR "),
  },
  ...DATED_KINDS.flatMap((kind) =>
    RECORD_KINDS[kind].tables.map(({ name, id, created }) => ({
      table: name,
      condition: isStale(kind, { id, created }),
    })),
  ),
];
