import { randomUUID } from "node:crypto";
import { type BackfillCounts } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import { type BackfillRuns, hashRanges, type WrongRows } from "@conversation-export/warehouse";
import { assertKept } from "./assert-kept.ts";
import { addUp, emptyCounts } from "./backfill-counts.ts";
import type { CorrectRecords, RunFacts } from "./correct-records.ts";

const ROUNDS = 3;
/** ClickHouse holds the keys in memory. */
const KEYS_AT_ONCE = 500_000;

/**
 * Nobody else may delete meanwhile; rewrites right rows that a merge dropped.
 * @throws ServiceError `backfill_unsettled`, `deletion_under_way`, `backfill_rows_gone`, `keys_lost`;
 * WarehouseError
 */
export type DeleteWrong = (
  run: string,
  options: { readonly signal: AbortSignal; onEvents(read: number): void },
) => Promise<BackfillCounts>;

export const createDeleteWrong = (deps: {
  readonly runs: BackfillRuns;
  readonly wrong: WrongRows;
  readonly correct: CorrectRecords;
  readonly factsOf: (run: string, signal: AbortSignal) => Promise<RunFacts>;
  readonly size: number;
  readonly keysAtOnce?: number;
}): DeleteWrong => {
  const { runs, wrong, correct, factsOf, size, keysAtOnce = KEYS_AT_ONCE } = deps;
  return async (run, { signal, onEvents }) => {
    const all: BackfillCounts[] = [];
    // Of attempts that died.
    const own = `${run}/`;
    await wrong.endOthers(own, signal);
    for (const left of await runs.list()) if (left.run.startsWith(own)) await runs.forget(left.run);
    let last = run;
    for (let round = 1; ; round += 1) {
      // An attempt that died may still write to its own run.
      const again = `${own}${randomUUID()}`;
      let noted: string | undefined;
      let keys = 0;
      const deleteNoted = async (name: string): Promise<void> => {
        await wrong.erase(name, signal);
        await wrong.end(name, signal);
        noted = undefined;
        keys = 0;
      };
      const records = await runs.countMarked(last, signal);
      await assertKept(runs, last, signal);
      if (records === 0) return addUp(all);
      if (round > ROUNDS)
        throw new ServiceError("backfill_unsettled", "wrong rows came back while they were replaced", {
          retryable: true,
        });
      await wrong.untilNoDeletion(signal);
      const facts = await factsOf(again, signal);
      await runs.beginMarked(again, last, records, signal);
      await assertKept(runs, last, signal);
      for (const range of hashRanges(Math.ceil(records / size))) {
        const { rows } = await correct(facts, range, {
          dryRun: false,
          signal,
          onEvents,
          onWritten: async ({ remove, different }) => {
            if (remove.length > 0) {
              noted ??= await wrong.begin(again, signal);
              await wrong.note(noted, remove, signal);
              keys += remove.length;
            }
            const unsure = different.filter(
              ({ hasWrong, isOutranked }) => isOutranked || (round > 1 && hasWrong),
            );
            await runs.mark(again, unsure, signal);
          },
        });
        all.push({ ...emptyCounts(), rows });
        if (noted !== undefined && keys >= keysAtOnce) await deleteNoted(noted);
      }
      if (noted !== undefined) await deleteNoted(noted);
      await assertKept(runs, again, signal);
      last = again;
    }
  };
};
