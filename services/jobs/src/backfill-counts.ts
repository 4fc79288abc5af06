import type { BackfillCounts, TableCounts } from "@conversation-export/queue";

const PROBLEMS = 20;
const TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"] as const;

/** Counts that grow. */
type Growing<T> = { -readonly [K in keyof T]: Growing<T[K]> };
export type GrowingCounts = Growing<BackfillCounts>;

const noRows = (): TableCounts => ({
  conversations: 0,
  conversation_updates: 0,
  handoffs: 0,
  messages: 0,
  end_users: 0,
});

export const emptyCounts = (): GrowingCounts => ({
  events: { read: 0, suppressed: 0, rejected: 0, ignored: 0 },
  records: { examined: 0, different: 0 },
  rows: { inserted: noRows(), deleted: noRows(), undeletable: noRows(), renewed: noRows() },
  problems: [],
});

/** Keeps the first of them. */
export const noteProblem = (counts: GrowingCounts, problem: BackfillCounts["problems"][number]): void => {
  if (counts.problems.length < PROBLEMS) counts.problems.push(problem);
};

const sumOf = <T extends Readonly<Record<string, number>>>(
  list: readonly T[],
  names: readonly (keyof T)[],
): T =>
  Object.fromEntries(names.map((name) => [name, list.reduce((sum, one) => sum + (one[name] ?? 0), 0)])) as T;

/** The counts of several parts together. */
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
      TABLES,
    ),
    deleted: sumOf(
      list.map(({ rows }) => rows.deleted),
      TABLES,
    ),
    undeletable: sumOf(
      list.map(({ rows }) => rows.undeletable),
      TABLES,
    ),
    renewed: sumOf(
      list.map(({ rows }) => rows.renewed),
      TABLES,
    ),
  },
  problems: list.flatMap(({ problems }) => problems).slice(0, PROBLEMS),
});
