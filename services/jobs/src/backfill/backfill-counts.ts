import { byRecordTable, RECORD_TABLES } from "@conversation-export/domain";
import type { BackfillCounts, TableCounts } from "@conversation-export/queue";

const PROBLEMS = 20;

/** Counts while they grow. */
type Growing<T> = { -readonly [K in keyof T]: Growing<T[K]> };
export type GrowingCounts = Growing<BackfillCounts>;

const noRows = (): TableCounts => byRecordTable(() => 0);

export const emptyCounts = (): GrowingCounts => ({
  events: { read: 0, suppressed: 0, rejected: 0, ignored: 0 },
  records: { examined: 0, different: 0 },
  rows: { inserted: noRows(), deleted: noRows(), undeletable: noRows() },
  problems: [],
});

/** Keeps the first problems only. */
export const noteProblem = (counts: GrowingCounts, problem: BackfillCounts["problems"][number]): void => {
  if (counts.problems.length < PROBLEMS) counts.problems.push(problem);
};

const sumOf = <T extends Readonly<Record<string, number>>>(
  list: readonly T[],
  names: readonly (keyof T)[],
): T =>
  Object.fromEntries(names.map((name) => [name, list.reduce((sum, one) => sum + (one[name] ?? 0), 0)])) as T;

/** Adds the counts of several parts. */
export const addUp = (list: readonly BackfillCounts[]): BackfillCounts => ({
  events: sumOf(
    list.map(({ events }) => events),
    ["read", "suppressed", "rejected", "ignored"],
  ),
  records: sumOf(
    list.map(({ records }) => records),
    ["examined", "different"],
  ),
  rows: {
    inserted: sumOf(
      list.map(({ rows }) => rows.inserted),
      RECORD_TABLES,
    ),
    deleted: sumOf(
      list.map(({ rows }) => rows.deleted),
      RECORD_TABLES,
    ),
    undeletable: sumOf(
      list.map(({ rows }) => rows.undeletable),
      RECORD_TABLES,
    ),
  },
  problems: list.flatMap(({ problems }) => problems).slice(0, PROBLEMS),
});
