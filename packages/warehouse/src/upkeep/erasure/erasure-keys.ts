import {
  formatTimestampZ,
  type Micros,
  READABLE_FIRST,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { CHANGES } from "../../tables/changes.ts";
import { DATED_KINDS, type DatedKind, RECORD_DATES, recordNameSql } from "../../tables/record-dates.ts";

/**
 * An identifier of a person in the form of `subjectOf`; records created before `createdBefore` are to be
 * erased.
 */
export type ErasureSubject = {
  readonly clientId: string;
  readonly subject: string;
  readonly createdBefore: Micros;
  readonly requestId: string;
};

export type Table = {
  readonly table: string;
  /**
   * The kinds of records in the table: columns of id and date, and a condition (`only`) for the rows of the
   * kind.
   */
  readonly records: readonly {
    readonly kind: RecordKind;
    readonly id: string;
    readonly date: string;
    readonly only?: string;
    /** The table names records by one column. */
    readonly named?: DatedKind;
  }[];
};

export const LANDED = Object.keys(RECORD_KINDS) as RecordKind[];
/** In the order of deletion: first the rows that make a record readable, their dates and changes
 * behind them. */
export const TABLES: readonly Table[] = [
  ...READABLE_FIRST.map(({ name, kind, id, created }) => ({
    table: name,
    records: [{ kind, id, date: created }],
  })),
  {
    table: RECORD_DATES,
    records: DATED_KINDS.map((kind) => ({
      kind,
      id: "id",
      date: "date_created",
      only: `kind = '${kind}'`,
      named: kind,
    })),
  },
  {
    table: CHANGES,
    records: LANDED.map((kind) => ({
      kind,
      id: "id",
      date: "date_created",
      only: `kind = '${kind}' AND NOT deleted`,
    })),
  },
  {
    table: "landing",
    records: LANDED.map((kind) => ({
      kind,
      id: "record_id",
      date: "date_created",
      only: `type = '${RECORD_KINDS[kind].type}'`,
    })),
  },
];

// Kinds of rows in job_keys. `date_created`: in rows of `recordKind` the date of the record, in all others
// the instant before which records are erased. `target`: the request.
export const KIND = {
  /** The subjects that the run was given, written once. If they disappear, another run has ended this one. */
  begun: "erase begun",
  subject: "erase subject",
  /** The subjects whose hashes are stored as suppressions. */
  hashed: "erase hashed",
  /** Of a request (`id`) and a table (`target`), `version` rows that are to be deleted. */
  counted: "erase counted",
  conversation: "erase conversation",
  message: "erase message",
} as const;
export const recordKind = (kind: Table["records"][number]["kind"]): string => `erase ${kind} record`;

export const KEY_COLUMNS = "(run_id, kind, client_id, id, date_created, target)";
export const RUN = "run_id = {run:String}";

/** SQL for the ids of `kind` that the run has collected, with their limits and requests. */
export const limitsOf = (
  kind: string,
): string => `(SELECT client_id, id, max(date_created) AS created_before, any(target) AS request
  FROM job_keys WHERE ${RUN} AND kind = '${kind}' GROUP BY client_id, id)`;

/** SQL condition for the rows of a table whose keys the run has collected. */
export const recordsOf = ({ records }: Table): string =>
  records
    .map(({ kind, id, date, only = "1", named }) => {
      const ofKind = `FROM job_keys WHERE ${RUN} AND kind = '${recordKind(kind)}'`;
      if (named !== undefined) {
        const name = recordNameSql("client_id", named, "id");
        return `((record, ${date}) GLOBAL IN (SELECT ${name}, date_created ${ofKind}))`;
      }
      const keys = `SELECT client_id, date_created, id ${ofKind}`;
      return `(${only} AND (client_id, ${date}, ${id}) GLOBAL IN (${keys}))`;
    })
    .join(" OR ");

/** Sends the identifiers as rows of an INSERT, which no query log contains. */
export const insertKeys = async (
  session: Session,
  runId: string,
  keys: readonly (ErasureSubject & { readonly kind: string; readonly id: string })[],
): Promise<void> => {
  if (keys.length === 0) return;
  const rows = keys.map(({ kind, clientId, id, createdBefore, requestId }) => ({
    run_id: runId,
    kind,
    client_id: clientId,
    id,
    date_created: formatTimestampZ(createdBefore),
    target: requestId,
  }));
  await session.insert("erasure.note", { table: "job_keys", rows });
};

/** Keys of one INSERT. */
export const MAX_KEYS = 10_000;

/** Concurrent statements of an erasure. */
export const AT_ONCE = 4;

/**
 * Runs `work` for each item, `AT_ONCE` at a time. When one fails, waits for those still running, then throws.
 */
export async function all<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const some = items.slice(at, at + AT_ONCE).map(work);
    await Promise.allSettled(some);
    results.push(...(await Promise.all(some)));
  }
  return results;
}

export const countOf = ([row]: readonly { readonly rows: string }[]): number => Number(row?.rows);
