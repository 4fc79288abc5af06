import type { RowKey } from "@conversation-export/domain";
import { type BackfillRuns, hashKey, type WrongRow, type WrongRows } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { emptyCounts } from "./backfill-counts.ts";
import type { CorrectRecords } from "./correct-records.ts";
import { createDeleteWrong } from "./delete-wrong.ts";
import { newPlan } from "./judge-record.ts";

const { signal } = new AbortController();
const ROW = { table: "messages", date: 0, target: "", targetKind: 0, version: 1n } as unknown as RowKey;
const OPTIONS = { signal, onEvents: () => {} };

const nameOf = (run: string): string => `wrong ${run}`;

const startDeletion = (
  records: number,
  left: readonly string[] = [],
  lost: (run: string) => boolean = () => false,
) => {
  const noted = new Map<string, WrongRow[]>(left.map((run) => [nameOf(run), []]));
  const copied = new Set(left);
  const marked = new Map([["backfill job", records]]);
  const erased: { run: string; keys: number }[] = [];
  const runs: Pick<BackfillRuns, "countMarked" | "beginMarked" | "exists" | "mark" | "list" | "forget"> = {
    countMarked: async (run) => marked.get(run) ?? 0,
    beginMarked: async (run) => void copied.add(run),
    exists: async (run) => !lost(run),
    mark: async (run, found) => {
      if (found.length > 0) marked.set(run, (marked.get(run) ?? 0) + new Set(found.map(hashKey)).size);
    },
    list: async () => [...copied].map((run) => ({ run, isOld: false })),
    forget: async (run) => void copied.delete(run),
  };
  const wrong: WrongRows = {
    untilNoDeletion: () => Promise.resolve(),
    begin: async (run) => {
      noted.set(nameOf(run), []);
      return nameOf(run);
    },
    note: async (run, rows) => void noted.set(run, [...(noted.get(run) ?? []), ...rows]),
    erase: async (run) => void erased.push({ run, keys: noted.get(run)?.length ?? 0 }),
    end: async (run) => void noted.delete(run),
    endOthers: async (run) => {
      for (const name of noted.keys()) if (name.startsWith(nameOf(run))) noted.delete(name);
    },
    sweep: () => Promise.resolve(),
  };
  const correct: CorrectRecords = async (_facts, _range, { onWritten }) => {
    const remove = [{ clientId: "acme", id: "1", row: ROW }];
    await onWritten({ ...newPlan("message.exported"), remove });
    return emptyCounts();
  };
  const deleteWrong = createDeleteWrong({
    runs: runs as BackfillRuns,
    wrong,
    correct,
    factsOf: async (run) => ({ run, coverage: null, stableUpTo: 0 }),
    size: 1,
    keysAtOnce: 2,
  });
  return { deleteWrong, noted, copied, erased };
};

it("deletes rows before it compares so many records that ClickHouse could not hold their keys", async () => {
  const { deleteWrong, noted, erased } = startDeletion(5);
  await deleteWrong("backfill job", OPTIONS);
  expect(erased.map(({ keys }) => keys)).toEqual([2, 2, 1]);
  expect(noted.size).toBe(0);
});

it("removes what an earlier attempt left and uses names of its own", async () => {
  const left = "backfill job/0f0e0d0c-0b0a-4900-8807-060504030201";
  const { deleteWrong, noted, copied, erased } = startDeletion(1, [left, "backfill job2/1"]);
  await deleteWrong("backfill job", OPTIONS);
  expect([...noted.keys()]).toEqual([nameOf("backfill job2/1")]);
  expect(copied.has(left)).toBe(false);
  const again = startDeletion(1);
  await again.deleteWrong("backfill job", OPTIONS);
  expect(again.erased[0]?.run).not.toBe(erased[0]?.run);
});

it.each([
  ["the marks are gone before they are counted", "backfill job", 1],
  ["the marks are gone while they are copied", "backfill job", 2],
  ["the copied rows are gone", "backfill job/", 1],
])("fails when %s: it may have compared none of them", async (_, of, time) => {
  let asked = 0;
  const lost = (run: string): boolean =>
    (run === of || (of.endsWith("/") && run.startsWith(of))) && (asked += 1) === time;
  const { deleteWrong } = startDeletion(2, [], lost);
  await expect(deleteWrong("backfill job", OPTIONS)).rejects.toMatchObject({ code: "backfill_rows_gone" });
  expect(asked).toBe(time);
});
