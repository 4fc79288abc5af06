import type { ExportRecord } from "../kinds/export-record.ts";
import { KIND_NAMES, ownTableOf, type RecordTable } from "../kinds/record-kinds.ts";
import { rightRowsOf, type RightRow, type RowKey, type StoredRow, versionNumber } from "./record-rows.ts";

export type KnownRecord = {
  /** Landed and accepted; of equal versions the last counts. */
  readonly exports: readonly ExportRecord[];
  readonly untouchable: ReadonlySet<bigint>;
  readonly stored: readonly StoredRow[];
  /** Whether a row that no export explains is certainly wrong. */
  readonly isDeletable: (row: StoredRow) => boolean;
  /** Whether its rows may have been written after `stored` was read. */
  readonly isOnItsWay: (version: bigint) => boolean;
  readonly digestOf: (row: RightRow) => string;
};

export type Correction = {
  readonly insert: readonly RightRow[];
  readonly remove: readonly RowKey[];
  /** Readable, not explained by an export, not deletable. */
  readonly undeletable: readonly RowKey[];
  /** A row to delete outranks one to write: a merge would drop the right one. */
  readonly outranked: ReadonlySet<RecordTable>;
};

const OF_EXPORT = (1n << 128n) - 1n;

const groupOf = ({ table, date, target, targetKind, version }: RowKey): string =>
  // The update index has the version in its key.
  `${table}/${date}/${table === "conversation_updates" ? version : targetKind}/${target}`;

const OWN_TABLES: ReadonlySet<RecordTable> = new Set(KIND_NAMES.map((kind) => ownTableOf(kind).name));

type RightRows = {
  readonly winners: ReadonlyMap<string, RightRow>;
  readonly explained: ReadonlySet<string>;
};

/** Of the update index only the live entry: compaction removes others. `present`: rows that stay. */
function rightRowsOfAll(exports: readonly ExportRecord[], present: readonly StoredRow[]): RightRows {
  const byVersion = new Map(exports.map((record) => [versionNumber(record.version), record]));
  let live = -1n;
  for (const version of byVersion.keys()) if (version > live) live = version;
  for (const { table, version } of present) if (OWN_TABLES.has(table) && version > live) live = version;
  const winners = new Map<string, RightRow>();
  const explained = new Set<string>();
  for (const record of byVersion.values()) {
    for (const row of rightRowsOf(record)) {
      const group = groupOf(row);
      explained.add(`${group}/${row.version}`);
      if (row.table === "conversation_updates" && row.version !== live) continue;
      const known = winners.get(group);
      if (known === undefined || known.version < row.version) winners.set(group, row);
    }
  }
  return { winners, explained };
}

/** Then readers get the merge of all exports. Superseded rows stay. */
export function correctionOf(known: KnownRecord): Correction {
  const { stored, untouchable, isDeletable, isOnItsWay, digestOf } = known;
  const touchable = stored.filter(({ version }) => !untouchable.has(version & OF_EXPORT));
  const { winners, explained } = rightRowsOfAll(
    known.exports,
    touchable.filter((row) => !isDeletable(row)),
  );
  const groups = Map.groupBy(touchable, groupOf);
  const insert: RightRow[] = [];
  const remove = new Map<string, RowKey>();
  const undeletable: RowKey[] = [];
  const outranked = new Set<RecordTable>();
  for (const name of new Set([...groups.keys(), ...winners.keys()])) {
    const rows = groups.get(name) ?? [];
    const top = winners.get(name);
    const wrong = rows.filter(({ version }) => !explained.has(`${name}/${version}`));
    const above = wrong.filter(({ version }) => top === undefined || version > top.version);
    const blocked = above.filter((row) => !isDeletable(row));
    // Rows of one key and version are deleted together.
    const kept = new Set(wrong.filter((row) => !isDeletable(row)).map(({ version }) => version));
    for (const row of wrong) if (!kept.has(row.version)) remove.set(`${name}/${row.version}`, row);
    undeletable.push(...blocked.filter(({ table }) => table !== "conversation_updates"));
    if (top === undefined || blocked.length > 0) continue;
    if (above.length > 0) outranked.add(top.table);
    // Readers get the last of equal versions.
    const present = rows.findLast(({ version }) => version === top.version);
    if (present === undefined && above.length === 0 && isOnItsWay(top.version & OF_EXPORT)) continue;
    if (above.length > 0 || present?.digest !== digestOf(top)) insert.push(top);
  }
  return { insert, remove: [...remove.values()], undeletable, outranked };
}
