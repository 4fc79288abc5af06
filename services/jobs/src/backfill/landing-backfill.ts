import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { END_OF_TIME, EVENT_TYPES, type EventType, type Micros } from "@conversation-export/domain";
import type { BackfillCounts, BackfillData, Exclusive, JobContext } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import {
  BACKFILL_RUN,
  type BackfillRuns,
  type LandingStore,
  type StableReader,
  type WrongRows,
} from "@conversation-export/warehouse";
import { ROWS } from "../process/locks.ts";
import { emptyCounts } from "./backfill-counts.ts";
import type { CorrectRecords, RunFacts } from "./correct-records.ts";
import { assertKept, rowsGone } from "./assert-kept.ts";
import { createDeleteWrong } from "./delete-wrong.ts";
import type { Plan } from "./judge-record.ts";
import { type LandingPart, partsOf, selectionsOf } from "./landing-parts.ts";

const STABLE_WITHIN_MS = 60_000;
const ASK_EVERY_MS = 500;
/** Rows read longer ago say too little about the present ones. */
const FRESH_FOR_MS = 86_400_000;

/** `readAt`: epoch ms. */
type ReadRun = Pick<LandingPart, "run" | "readAt">;

type Context<Data> = Omit<JobContext<Data>, "state" | "save">;

export type LandingBackfill = {
  /** @throws ServiceError `ingest_unsettled`, retryable */
  split(context: Context<BackfillData>): Promise<LandingPart[]>;
  /** @throws ServiceError `backfill_rows_gone` when they were read over a day ago */
  runPart(context: Context<unknown>, part: LandingPart, dryRun: boolean): Promise<BackfillCounts>;
  /** `since`: landing's begin at the run's start, undefined without parts. */
  uncovered(
    context: Context<BackfillData>,
    since: Micros | null | undefined,
  ): Promise<{ readonly before: Micros; readonly records: number } | null>;
  /**
   * Keeps the run: the step may be repeated.
   * @throws ServiceError as `DeleteWrong`, `backfill_rows_gone`, `ingest_unsettled`
   */
  finish(context: Context<unknown>, run: ReadRun, dryRun: boolean): Promise<BackfillCounts>;
  /** Call it once the job has stored that it needs its run no more. */
  forget(context: Context<unknown>): Promise<void>;
  /** Removes what no job will or may use any more. */
  sweep(signal?: AbortSignal): Promise<void>;
};

const jobOf = (run: string): string => run.slice(BACKFILL_RUN.length).replace(/(\/[0-9a-f-]{36}){1,2}$/, "");

export const createLandingBackfill = (deps: {
  readonly runs: BackfillRuns;
  readonly wrong: WrongRows;
  readonly landing: Pick<LandingStore, "coverage">;
  readonly stable: StableReader;
  readonly correct: CorrectRecords;
  readonly exclusive: Pick<Exclusive, "run">;
  /** false while another Redis may know the job. */
  readonly isOver: (job: string) => Promise<boolean>;
  readonly alive: () => Promise<ReadonlySet<string>>;
  readonly typeOf: (topic: string) => EventType | undefined;
  /** An event may claim to be this much later than its arrival. */
  readonly maxTimeAheadMs: number;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly partEvents: number;
}): LandingBackfill => {
  const { runs, wrong, landing, stable, correct, exclusive, isOver, alive, typeOf, now, partEvents } = deps;

  /** Resolves to an instant not before `begun`, below which all that landed is stored. */
  const stableUpTo = async (begun: Micros, signal: AbortSignal): Promise<Micros> => {
    const giveUpAt = deps.elapsed() + STABLE_WITHIN_MS;
    for (;;) {
      const { until } = await stable.load();
      if (until >= begun) return until;
      if (deps.elapsed() > giveUpAt)
        throw new ServiceError("ingest_unsettled", "a writer has not yet written all that it has landed", {
          retryable: true,
        });
      await sleep(ASK_EVERY_MS, undefined, { signal });
    }
  };
  const factsOf = async (run: string, signal: AbortSignal): Promise<RunFacts> => {
    const coverage = await landing.coverage(signal);
    // ClickHouse's clock, which writers follow; this process's may be ahead.
    return { run, coverage, stableUpTo: await stableUpTo(coverage?.asOf ?? now() * 1_000, signal) };
  };
  const deleteWrong = createDeleteWrong({ runs, wrong, correct, factsOf, size: partEvents });

  const sweepRuns = async (): Promise<void> => {
    for (const { run, isOld } of await runs.list())
      if (isOld || (await isOver(jobOf(run)))) await runs.forget(run);
  };
  const forgetAll = async (job: string): Promise<void> => {
    for (const { run } of await runs.list()) if (jobOf(run) === job) await runs.forget(run);
  };
  const assertFresh = ({ readAt }: ReadRun): void => {
    if (now() - readAt > FRESH_FOR_MS) throw rowsGone();
  };

  const readTo = ({ progress }: Context<unknown>, note?: string) => {
    let done = 0;
    return (read: number): void => {
      done += read;
      const reported = { done, total: null, unit: "events" };
      void progress(note === undefined ? reported : { ...reported, note }).catch(() => {});
    };
  };

  return {
    async split({ id, data, signal }) {
      await sweepRuns();
      await forgetAll(id);
      // An attempt that died may still write to its own run.
      const run = `${BACKFILL_RUN}${id}/${randomUUID()}`;
      const selections = selectionsOf(data, deps.maxTimeAheadMs);
      const facts = await factsOf(run, signal);
      let events = 0;
      for (const selection of selections) events += await runs.count(selection, signal);
      if (events === 0) return [];
      const readAt = now();
      try {
        await runs.begin(run, selections, events, signal);
      } catch (error) {
        // If this fails, the sweep removes it.
        await runs.forget(run).catch(() => {});
        throw error;
      }
      return partsOf({ ...facts, readAt }, events, partEvents);
    },
    async runPart(context, part, dryRun) {
      const { signal } = context;
      const { run, coverage, stableUpTo: until, from, to } = part;
      assertFresh(part);
      await assertKept(runs, run, signal);
      const facts = { run, coverage, stableUpTo: until };
      const onEvents = readTo(context);
      const onWritten = async ({ different }: Plan): Promise<void> => {
        const wrongOnes = different.filter(({ hasWrong }) => hasWrong);
        if (!dryRun) await runs.mark(run, wrongOnes, signal);
      };
      const counts = await correct(facts, { from, to }, { dryRun, signal, onEvents, onWritten });
      await assertKept(runs, run, signal);
      // Wrong rows are deleted, and counted, at the end of the job.
      return dryRun ? counts : { ...counts, rows: { ...counts.rows, deleted: emptyCounts().rows.deleted } };
    },
    async uncovered({ data, signal }, known) {
      // All that landing holds is covered.
      if (data.window === null) return null;
      const since = known === undefined ? (await landing.coverage(signal))?.since : known;
      const before = since ?? END_OF_TIME;
      let records = 0;
      for (const selection of selectionsOf(data, deps.maxTimeAheadMs)) {
        const { range } = selection;
        const types = range.by === "offsets" ? [typeOf(range.topic)] : EVENT_TYPES;
        for (const type of types)
          if (type !== undefined) records += await runs.countOlder(type, selection, before, signal);
      }
      return records === 0 ? null : { before, records };
    },
    async finish(context, part, dryRun) {
      assertFresh(part);
      const onEvents = readTo(context, "deletes wrong rows");
      return dryRun
        ? emptyCounts()
        : exclusive.run(ROWS, context.signal, (signal) => deleteWrong(part.run, { signal, onEvents }));
    },
    forget: ({ id }) => forgetAll(id),
    sweep: async (signal) => {
      await sweepRuns();
      await wrong.sweep(alive, signal);
    },
  };
};
