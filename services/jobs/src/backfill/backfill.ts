import { formatTimestampZ, type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import {
  type BackfillCounts,
  type BackfillData,
  type BackfillResult,
  type BackfillSource,
  backfillCountsSchema,
  backfillJob,
  type Exclusive,
  type JobContext,
  type SplitJobHandler,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { WindowStore } from "@conversation-export/warehouse";
import { z } from "zod";
import type { AddEvents } from "./add-events.ts";
import { addUp, emptyCounts } from "./backfill-counts.ts";
import { type EventSource, type SourcePart, sourcePartSchema } from "../sources/event-source.ts";
import type { LandingBackfill } from "./landing-backfill.ts";
import { type LandingPart, landingPartSchema, microsOf } from "./landing-parts.ts";
import { LEDGER } from "../process/locks.ts";
import type { Throttle } from "./throttle.ts";

const partSchema = z.union([landingPartSchema, sourcePartSchema]);
type Part = LandingPart | SourcePart;

const partResultSchema = backfillCountsSchema.extend({
  deletableSince: z.int().nullable(),
  run: landingPartSchema.pick({ run: true, readAt: true }).nullable(),
});
type PartResult = z.infer<typeof partResultSchema>;

type PartContext = JobContext<{ readonly job: BackfillData; readonly part: Part }>;

const checkWindow = ({ window }: BackfillData): void => {
  if (window === null) return;
  const isOrdered =
    window.by === "offsets"
      ? window.ranges.every(({ from, to }) => from < to)
      : microsOf(window.from) < microsOf(window.to);
  if (!isOrdered) throw new ServiceError("backfill_window", "a window must begin before it ends");
};

/** From landing it corrects, from other sources it only adds. */
export const createBackfill = (deps: {
  readonly fromLanding: LandingBackfill;
  readonly windows: Pick<WindowStore, "markBackfilled">;
  readonly exclusive: Pick<Exclusive, "run">;
  readonly sourceOf: (source: Exclude<BackfillSource, { kind: "landing" }>) => EventSource;
  readonly events: AddEvents;
  readonly connected: (signal: AbortSignal) => Promise<void>;
  readonly throttle: Throttle;
  readonly now: () => number;
}): SplitJobHandler<BackfillData, Part, PartResult, BackfillResult, BackfillCounts> => {
  const { fromLanding, windows, exclusive, sourceOf, events, connected, throttle, now } = deps;

  const addPart = async (context: PartContext, part: SourcePart): Promise<PartResult> => {
    const { job } = context.data;
    if (job.source.kind === "landing") throw new TypeError("a part of another source");
    if (job.source.kind === "kafka") await connected(context.signal);
    let sum: BackfillCounts = emptyCounts();
    for await (const batch of sourceOf(job.source).read(part, context.signal)) {
      const startedAt = performance.now();
      await untilQuiet(context);
      sum = addUp([sum, await events.add(batch, job, context.signal)]);
      await context.progress({ done: sum.events.read, total: null, unit: "events" });
      await throttle.pace(batch.events.length, startedAt, job.rowsPerSecond, context.signal);
    }
    return { ...sum, deletableSince: null, run: null };
  };

  const untilQuiet = ({ data, signal, progress }: PartContext): Promise<void> =>
    throttle.untilLagIs(data.job.maxLag, signal, (lag) => {
      const note = lag === null ? "waits: the lag is not known" : `waits for ingest, which lags by ${lag}`;
      void progress({ done: 0, total: null, unit: "events", note }).catch(() => {});
    });

  /** Only windows whose records were all computed. */
  const noteWindows = async (data: BackfillData, coveredFrom: Micros, signal: AbortSignal) => {
    const { source, window, clientId, dryRun } = data;
    if (source.kind !== "landing" || window?.by !== "upload" || clientId !== null || dryRun) return;
    const from = Math.max(microsOf(window.from), coveredFrom);
    const range = { from, to: microsOf(window.to) };
    if (range.from >= range.to) return;
    await exclusive.run(LEDGER, signal, () => windows.markBackfilled(range, now() * 1_000));
  };

  return {
    type: backfillJob,
    part: partSchema,
    partResult: partResultSchema,
    async split(context) {
      const { data, signal } = context;
      checkWindow(data);
      if (data.source.kind === "landing") return fromLanding.split(context);
      if (data.source.kind === "kafka") await connected(signal);
      return sourceOf(data.source).parts(data.window, signal);
    },
    async runPart(context) {
      const { job, part } = context.data;
      if (part.kind !== "landing") return addPart(context, part);
      const startedAt = performance.now();
      await untilQuiet(context);
      const counts = await fromLanding.runPart(context, part, job.dryRun);
      await throttle.pace(counts.events.read, startedAt, job.rowsPerSecond, context.signal);
      const { run, readAt, coverage } = part;
      return { ...counts, deletableSince: coverage?.since ?? null, run: { run, readAt } };
    },
    async finish(context, results) {
      const { data, signal } = context;
      const run = results[0]?.run ?? null;
      const counts: BackfillCounts[] = [...results];
      if (run !== null) {
        const deleted = context.state ?? (await fromLanding.finish(context, run, data.dryRun));
        if (context.state === undefined) await context.save(deleted);
        await fromLanding.forget(context);
        counts.push(deleted);
      }
      const since = results[0]?.deletableSince;
      const uncovered = data.source.kind === "landing" ? await fromLanding.uncovered(context, since) : null;
      const coveredFrom = Math.ceil((uncovered?.before ?? 0) / MICROS_IN_SECOND) * MICROS_IN_SECOND;
      await noteWindows(data, coveredFrom, signal);
      return {
        ...addUp(counts),
        dryRun: data.dryRun,
        parts: results.length,
        deletableSince: instantOf(latest(results.map(({ deletableSince }) => deletableSince))),
        uncovered:
          uncovered === null
            ? null
            : { before: formatTimestampZ(uncovered.before), records: uncovered.records },
      };
    },
  };
};

/** null when an instant is unknown. */
const latest = (instants: readonly (Micros | null)[]): Micros | null => {
  const known = instants.filter((instant) => instant !== null);
  return known.length === 0 || known.length < instants.length ? null : Math.max(...known);
};

const instantOf = (instant: Micros | null): string | null =>
  instant === null ? null : formatTimestampZ(instant);
