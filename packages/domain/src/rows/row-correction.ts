import type { ExportRecord } from "../record/export-record.ts";
import type { RecordTable } from "../record/record-kinds.ts";
import { rightRowsOf, type RightRow, type RowKey, type StoredRow, versionNumber } from "./record-rows.ts";
import type { Micros } from "../event/timestamp.ts";

/** What is known of one record. */
export type KnownRecord = {
  /** All its exports that landed and are accepted; of equal versions the last counts. */
  readonly exports: readonly ExportRecord[];
  /** Versions of exports whose rows the correction leaves alone. */
  readonly untouchable: ReadonlySet<bigint>;
  /** All its stored rows, under any key. */
  readonly stored: readonly StoredRow[];
  /** true when a row that no export explains is certainly wrong and may be deleted. */
  readonly isDeletable: (row: StoredRow) => boolean;
  /** true for the version of an export of which rows may have been written after the stored rows were read. */
  readonly isOnItsWay: (version: bigint) => boolean;
  /** Digest of a right row, as in `StoredRow`. */
  readonly digestOf: (row: RightRow) => string;
};

export type Correction = {
  /** Rows to write; at most one for a key. */
  readonly insert: readonly RightRow[];
  /** Rows to delete, by key and version. */
  readonly remove: readonly RowKey[];
  /** Rows that readers see, that no export explains, and that may not be deleted. */
  readonly undeletable: readonly RowKey[];
  /**
   * Tables in which a row to delete outranks a row to write under the same key: a merge would drop the right
   * one.
   */
  readonly outranked: ReadonlySet<RecordTable>;
};

const OF_EXPORT = (1n << 128n) - 1n;

const groupOf = ({ table, date, target, targetKind, version }: RowKey): string =>
  // The version is part of the key of the update index.
  `${table}/${date}/${table === "conversation_updates" ? version : targetKind}/${target}`;

/**
 * The key dates of a record that readers may see: a corrected date of creation leaves one more until it is
 * compacted.
 */
function standingDates(
  latest: ExportRecord,
  byVersion: ReadonlyMap<bigint, ExportRecord>,
  stored: readonly StoredRow[],
): ReadonlySet<Micros> {
  const dates = new Set([latest.dateCreated]);
  for (const { table, date, version } of stored) {
    const isOwn = table === "conversations" || table === "messages";
    if (isOwn && byVersion.get(version)?.dateCreated === date) dates.add(date);
  }
  return dates;
}

/**
 * The merge of all exports of a record (specification 2.1, handoffs rule 5): for each key the row that wins.
 * Handoffs of an export whose own key does not stand belong to the key of the latest export.
 */
function winningRows(
  byVersion: ReadonlyMap<bigint, ExportRecord>,
  latest: ExportRecord,
  standing: ReadonlySet<Micros>,
): ReadonlyMap<string, RightRow> {
  const winners = new Map<string, RightRow>();
  const take = (row: RightRow): void => {
    const group = groupOf(row);
    const known = winners.get(group);
    if (known === undefined || known.version < row.version) winners.set(group, row);
  };
  const latestAt = new Map<Micros, bigint>();
  for (const [version, { dateCreated }] of byVersion) {
    const known = latestAt.get(dateCreated);
    if (known === undefined || known < version) latestAt.set(dateCreated, version);
  }
  for (const [version, record] of byVersion) {
    const isStanding = standing.has(record.dateCreated);
    const isLive = isStanding && latestAt.get(record.dateCreated) === version;
    for (const row of rightRowsOf(record, isStanding ? record.dateCreated : latest.dateCreated)) {
      if (row.table === "handoffs" || row.table === "end_users" || isLive) take(row);
    }
  }
  return winners;
}

/** The right row at the place of a stored one; undefined when no export leads to a row there. */
function rightRowAt(stored: RowKey, byVersion: ReadonlyMap<bigint, ExportRecord>): RightRow | undefined {
  const ofExport = stored.version & OF_EXPORT;
  const record = byVersion.get(ofExport);
  if (record === undefined) return undefined;
  const group = groupOf(stored);
  const isThere = (row: RightRow): boolean => row.version === stored.version && groupOf(row) === group;
  const own = rightRowsOf(record).find(isThere);
  if (own !== undefined || stored.table !== "handoffs") return own;
  // Compaction moves the handoffs of an older key under that of a later export.
  for (const [version, { dateCreated }] of byVersion) {
    if (version > ofExport && dateCreated === stored.date)
      return rightRowsOf(record, dateCreated).find(isThere);
  }
  return undefined;
}

type Group = { readonly rows: StoredRow[]; winner: RightRow | undefined };

/**
 * Compares the rows of one record with its exports. Once the correction is applied, readers get exactly the
 * merge of all exports, and the next one is empty. Superseded rows stay: merges drop them.
 */
export function correctionOf(known: KnownRecord): Correction {
  const { stored, untouchable, isDeletable, isOnItsWay, digestOf } = known;
  const byVersion = new Map(known.exports.map((record) => [versionNumber(record.version), record]));
  const groups = new Map<string, Group>();
  for (const row of stored) {
    if (untouchable.has(row.version & OF_EXPORT)) continue;
    const name = groupOf(row);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { rows: [row], winner: undefined });
    else group.rows.push(row);
  }
  const latest = known.exports.reduce<ExportRecord | undefined>(
    (found, record) =>
      found === undefined || versionNumber(record.version) >= versionNumber(found.version) ? record : found,
    undefined,
  );
  if (latest !== undefined) {
    const standing = standingDates(latest, byVersion, stored);
    for (const [name, winner] of winningRows(byVersion, latest, standing)) {
      const group = groups.get(name);
      if (group === undefined) groups.set(name, { rows: [], winner });
      else group.winner = winner;
    }
  }

  const insert: RightRow[] = [];
  const remove = new Map<string, RowKey>();
  const undeletable: RowKey[] = [];
  const outranked = new Set<RecordTable>();
  for (const [name, { rows, winner }] of groups) {
    let top = winner;
    const wrong: StoredRow[] = [];
    // The last of equal versions is what readers get.
    const shown = new Map<bigint, StoredRow>();
    for (const row of rows) {
      const right = rightRowAt(row, byVersion);
      if (right === undefined) {
        wrong.push(row);
        continue;
      }
      shown.set(row.version, row);
      if (winner !== undefined && top !== undefined && right.version > top.version) top = right;
    }
    const above = wrong.filter(({ version }) => top === undefined || version > top.version);
    const blocked = above.filter((row) => !isDeletable(row));
    // Two rows of one key and version go together, so both must be allowed to.
    const kept = new Set(wrong.filter((row) => !isDeletable(row)).map(({ version }) => version));
    for (const row of wrong) if (!kept.has(row.version)) remove.set(`${name}/${row.version}`, row);
    // An entry of the update index shows nothing by itself.
    const isSeen = ({ table }: RowKey): boolean => table !== "conversation_updates";
    undeletable.push(...blocked.filter(isSeen));
    if (top === undefined || blocked.length > 0) continue;
    if (above.length > 0) outranked.add(top.table);
    const present = shown.get(top.version);
    if (present === undefined && above.length === 0 && isOnItsWay(top.version & OF_EXPORT)) continue;
    if (above.length > 0 || present === undefined || present.digest !== digestOf(top)) insert.push(top);
  }
  return { insert, remove: [...remove.values()], undeletable, outranked };
}
