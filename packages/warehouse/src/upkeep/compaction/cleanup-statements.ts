import type { Micros } from "@conversation-export/domain";

/** Upload windows, all of one length. */
export type CleanupScope = {
  /** Starts of the windows, µs. */
  readonly starts: readonly Micros[];
  readonly length: Micros;
};

/** A share of the records written in the windows, by the hash of their id. */
export type CleanupShare = CleanupScope & { readonly chunk: number; readonly chunks: number };

/** The windows as parameters of the statements below. */
export const windowsOf = ({ starts, length }: CleanupScope): Readonly<Record<string, unknown>> => ({
  starts: starts.map((start) => Math.floor(start / 1_000_000)),
  seconds: length / 1_000_000,
  first: Math.min(...starts),
  end: Math.max(...starts) + length,
});

const INSERT_KEYS =
  "INSERT INTO compaction_keys (run_id, kind, client_id, id, key_date, target, target_kind, version)";

const IN_WINDOWS = `uploaded_at >= fromUnixTimestamp64Micro({first:Int64}, 'UTC')
    AND uploaded_at < fromUnixTimestamp64Micro({end:Int64}, 'UTC')
    AND intDiv(toUnixTimestamp(uploaded_at), {seconds:UInt32}) * {seconds:UInt32} IN {starts:Array(UInt32)}`;

const inChunk = (id: string): string => `cityHash64(client_id, ${id}) % {chunks:UInt32} = {chunk:UInt32}`;

/** Keys of this run. */
const keysOfRun = (kind: string, columns: string): string =>
  `(SELECT ${columns} FROM compaction_keys WHERE run_id = {run:String} AND kind = '${kind}')`;

const noteWritten = (kind: string, table: string, id: string): string =>
  `INSERT INTO compaction_keys (run_id, kind, client_id, id)
    SELECT DISTINCT {run:String}, 'written ${kind}', client_id, ${id} FROM ${table} WHERE ${IN_WINDOWS}`;

export const NOTING: readonly string[] = [
  noteWritten("conversation", "conversations", "conversation_id"),
  noteWritten("message", "messages", "message_id"),
];

/** Records of the share that were written in the windows. */
const isWritten = (kind: string, id: string): string =>
  `(client_id, ${id}) IN (SELECT client_id, id FROM compaction_keys
    WHERE run_id = {windows:String} AND kind = 'written ${kind}' AND ${inChunk("id")})`;

/**
 * An entry is superseded when a later export of its record was written in a closed window. That export has
 * been readable for minutes, so not even a query that is just opening its tables needs the entry. The live
 * entry must exist.
 */
const SUPERSEDED_UPDATES = `INSERT INTO compaction_keys (run_id, kind, client_id, id, key_date, record_date, version)
  SELECT {run:String}, 'superseded', client_id, conversation_id, entry.1, date_created, entry.2
  FROM (
    SELECT u.client_id AS client_id, u.date_created AS date_created, u.conversation_id AS conversation_id,
      groupUniqArrayIf((u.date_updated, u.version), u.version < l.latest) AS entries
    FROM (SELECT client_id, date_updated, date_created, conversation_id, version FROM conversation_updates
      WHERE ${isWritten("conversation", "conversation_id")}) AS u
    INNER JOIN (SELECT client_id, date_created, conversation_id, max(version) AS latest FROM conversations
      WHERE ${IN_WINDOWS} AND ${inChunk("conversation_id")}
      GROUP BY client_id, date_created, conversation_id) AS l
    ON u.client_id = l.client_id AND u.date_created = l.date_created AND u.conversation_id = l.conversation_id
    GROUP BY u.client_id, u.date_created, u.conversation_id
    HAVING countIf(u.version = l.latest) > 0 AND notEmpty(entries))
  ARRAY JOIN entries AS entry`;

/**
 * Records with rows under several dates. The date of the latest export stays; of equal versions, that of the
 * later upload. Inserts a key for the date that stays, and one for each other date.
 */
const doubleKeys = (
  kind: string,
  table: string,
  id: string,
  more: string,
): string => `INSERT INTO compaction_keys
    (run_id, kind, client_id, id, key_date, record_date, version)
  SELECT {run:String}, if(date = stays, '${kind}', '${kind} date'), client_id, id, date, stays, if(date = stays, latest, 0)
  FROM (
    SELECT client_id, id, argMaxIf(date_created, (version, uploaded_at), is_record) AS stays,
      toUInt256(maxIf(version, is_record)) AS latest, groupUniqArray(date_created) AS dates
    FROM (
      SELECT client_id, ${id} AS id, date_created, version, uploaded_at, true AS is_record
      FROM ${table} WHERE ${isWritten(kind, id)}
      ${more})
    GROUP BY client_id, id
    HAVING length(dates) > 1 AND countIf(is_record) > 0
      AND argMaxIf(uploaded_at, (version, uploaded_at), is_record) < fromUnixTimestamp64Micro({end:Int64}, 'UTC'))
  ARRAY JOIN dates AS date`;

// After a run that broke off, handoffs may be the only rows left under another date. Handoffs newer than the
// latest record belong to a batch that is being inserted.
const HANDOFF_DATES = `UNION ALL
      SELECT client_id, conversation_id AS id, conversation_date_created AS date_created, toUInt128(version) AS version,
        uploaded_at, false AS is_record
      FROM handoffs WHERE ${isWritten("conversation", "conversation_id")}`;

/** INSERT of the keys of rows of these records under the dates that do not stay. */
const otherRows = (
  kind: string,
  record: string,
  table: string,
  names: {
    readonly id: string;
    /** Column of the record's date of creation. */
    readonly created: string;
    readonly key?: string;
    readonly more?: string;
  },
): string => {
  const { id, created, key = created, more = "'', 0" } = names;
  const isOther =
    key === created
      ? `(client_id, ${key}, ${id}) IN ${keysOfRun(`${record} date`, "client_id, key_date, id")}`
      : `(client_id, ${id}) IN ${keysOfRun(record, "client_id, id")}`;
  return `${INSERT_KEYS}
  SELECT DISTINCT {run:String}, '${kind}', r.client_id, r.${id}, r.${key}, ${more}, r.version
  FROM (SELECT * FROM ${table} WHERE ${isOther}) AS r
  INNER JOIN ${keysOfRun(record, "client_id, id, record_date, toUInt128(version) AS latest")} AS w
    ON r.client_id = w.client_id AND r.${id} = w.id
  WHERE r.${created} != w.record_date AND toUInt128(r.version) <= w.latest`;
};

export const FINDING: readonly string[] = [
  doubleKeys("conversation", "conversations", "conversation_id", HANDOFF_DATES),
  doubleKeys("message", "messages", "message_id", ""),
  SUPERSEDED_UPDATES,
];

export const FINDING_OTHERS: readonly string[] = [
  otherRows("other conversation", "conversation", "conversations", {
    id: "conversation_id",
    created: "date_created",
  }),
  otherRows("other update", "conversation", "conversation_updates", {
    id: "conversation_id",
    created: "date_created",
    key: "date_updated",
  }),
  otherRows("other handoff", "conversation", "handoffs", {
    id: "conversation_id",
    created: "conversation_date_created",
    more: "r.target, toUInt8(r.target_kind)",
  }),
  otherRows("other message", "message", "messages", { id: "message_id", created: "date_created" }),
];

const IS_NOT_ERASED = `(client_id, conversation_id) NOT IN
        (SELECT client_id, value FROM suppressions WHERE kind = 'conversation')`;

// Skips handoffs that are already under the right date in this version or a later one, and records that are
// being erased. Rows keep their upload instant, because they are no new export. FINAL picks the last inserted
// of equal versions, like readers.
export const MOVE_HANDOFFS = `INSERT INTO handoffs (client_id, conversation_date_created, conversation_id, target, target_kind,
    version, uploaded_at, date_created, name, outcome_status, reason_code, entry)
  SELECT h.client_id, w.record_date, h.conversation_id, h.target, h.target_kind,
    h.version, h.uploaded_at, h.date_created, h.name, h.outcome_status, h.reason_code, h.entry
  FROM (SELECT * FROM handoffs FINAL
    WHERE (client_id, conversation_date_created, conversation_id, target, toUInt8(target_kind), version)
        IN ${keysOfRun("other handoff", "client_id, key_date, id, target, target_kind, version")}
      AND ${IS_NOT_ERASED}
    ORDER BY version DESC, uploaded_at DESC LIMIT 1 BY client_id, conversation_id, target, target_kind) AS h
  INNER JOIN ${keysOfRun("conversation", "client_id, id, record_date")} AS w
    ON h.client_id = w.client_id AND h.conversation_id = w.id
  LEFT JOIN (SELECT client_id, conversation_date_created, conversation_id, target, target_kind, max(version) AS version
    FROM handoffs WHERE (client_id, conversation_date_created, conversation_id)
        IN ${keysOfRun("conversation", "client_id, record_date, id")}
    GROUP BY client_id, conversation_date_created, conversation_id, target, target_kind) AS e
    ON e.client_id = w.client_id AND e.conversation_date_created = w.record_date
      AND e.conversation_id = w.id AND e.target = h.target AND e.target_kind = h.target_kind
  WHERE e.version < h.version`;

const liveOf = (columns: string): string => `SELECT ${columns} FROM conversations FINAL
    WHERE (client_id, date_created, conversation_id) IN
      (SELECT client_id, record_date, id FROM compaction_keys
        WHERE run_id = {run:String} AND kind IN ('superseded', 'conversation')) AND ${IS_NOT_ERASED}`;
export const LIVE = liveOf("client_id, date_updated, conversation_id, version");
export const HAS_NO_ENTRY = `(client_id, date_updated, conversation_id, version) NOT IN
    (SELECT client_id, date_updated, conversation_id, version FROM conversation_updates
      WHERE (client_id, date_updated, conversation_id) IN (${liveOf("client_id, date_updated, conversation_id")}))`;
const ENTRY_COLUMNS =
  "client_id, date_updated, conversation_id, version, date_created, uploaded_at, head, tail";
export const RESTORE_ENTRIES = `INSERT INTO conversation_updates (${ENTRY_COLUMNS})
  SELECT ${ENTRY_COLUMNS} FROM (${liveOf(ENTRY_COLUMNS)}) WHERE ${HAS_NO_ENTRY}`;
