import { byRecordTable } from "@conversation-export/domain";
import type { BackfillCounts, TableCounts } from "@conversation-export/queue";

const PROBLEMS = 20;

type Growing<T> = { -readonly [K in keyof T]: Growing<T[K]> };
export type GrowingCounts = Growing<BackfillCounts>;

const noRows = (): TableCounts => byRecordTable(() => 0);

export const emptyCounts = (): GrowingCounts => ({
  events: { read: 0, suppressed: 0, rejected: 0, ignored: 0 },
  records: { examined: 0, different: 0 },
  rows: { inserted: noRows(), deleted: noRows(), undeletable: noRows() },
  problems: [],
});

export const noteProblem = (counts: GrowingCounts, problem: BackfillCounts["problems"][number]): void => {
  if (counts.problems.length < PROBLEMS) counts.problems.push(problem);
};

const add = <T>(one: T, other: T): T => {
  if (typeof one === "number") return (one + Number(other)) as T;
  const entries = Object.entries(one as object).map(([name, value]): [string, unknown] => [
    name,
    add(value, (other as Record<string, unknown>)[name]),
  ]);
  return Object.fromEntries(entries) as T;
};

export const addUp = (list: readonly BackfillCounts[]): BackfillCounts =>
  list.reduce<BackfillCounts>(
    (sum, { events, records, rows, problems }) => ({
      events: add(sum.events, events),
      records: add(sum.records, records),
      rows: add(sum.rows, rows),
      problems: [...sum.problems, ...problems].slice(0, PROBLEMS),
    }),
    emptyCounts(),
  );
