import { formatTimestampZ, type Micros } from "@conversation-export/domain";
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
import type {
  LandingCoverage,
  LandingStore,
  RecordReader,
  WindowStore,
} from "@conversation-export/warehouse";
import { z } from "zod";
import type { AddEvents } from "./add-events.ts";
import { addUp, emptyCounts } from "./backfill-counts.ts";
import type { CorrectRecords } from "./correct-records.ts";
import { type EventSource, type SourcePart, sourcePartSchema } from "../sources/event-source.ts";
import {
  cutIntoParts,
  type LandingPart,
  landingPartSchema,
  partSelection,
  rangesOf,
  wholeSelection,
} from "./landing-parts.ts";
import { LEDGER, ROWS } from "../process/locks.ts";
import type { Throttle } from "./throttle.ts";

const PART_EVENTS = 20_000;
/** Below the largest number of parts of a job. */
const MAX_PARTS = 8_000;
/** Stretches in which landing is counted: 10 seconds, or a number of offsets. */
const STRETCH_MICROS = 10_000_000;
const STRETCH_OFFSETS = 1_000;
const COVERAGE_HOLDS_MS = 600_000;

const partSchema = z.union([landingPartSchema, sourcePartSchema]);
type Part = LandingPart | SourcePart;

const partResultSchema = backfillCountsSchema.extend({ deletableSince: z.int().nullable() });
type PartResult = z.infer<typeof partResultSchema>;

type PartContext = JobContext<{ readonly job: BackfillData; readonly part: Part }>;

const checkWindow = ({ window }: BackfillData): void => {
  if (window === null) return;
  const ranges = window.by === "offsets" ? window.ranges : [window];
  for (const { from, to } of ranges) {
    if (window.by === "offsets" ? from < to : Date.parse(String(from)) < Date.parse(String(to))) continue;
    throw new ServiceError("backfill_window", "a window must begin before it ends");
  }
};

/**
 * Processes a window of events again with the current code. From landing it corrects records; from other
 * sources it only adds.
 */
export const createBackfill = (deps: {
  readonly reader: RecordReader;
  readonly landing: Pick<LandingStore, "coverage">;
  readonly windows: Pick<WindowStore, "markBackfilled">;
  readonly exclusive: Pick<Exclusive, "run">;
  readonly correct: CorrectRecords;
  readonly sourceOf: (source: Exclude<BackfillSource, { kind: "landing" }>) => EventSource;
  readonly events: AddEvents;
  /** Resolves when Kafka is connected. */
  readonly connected: (signal: AbortSignal) => Promise<void>;
  readonly throttle: Throttle;
  /** How much later than its arrival an event may claim to be. */
  readonly maxTimeAheadMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly partEvents?: number;
}): SplitJobHandler<BackfillData, Part, PartResult, BackfillResult> => {
  const {
    reader,
    landing,
    windows,
    exclusive,
    correct,
    sourceOf,
    events,
    connected,
    throttle,
    maxTimeAheadMs,
    now,
  } = deps;
  const { partEvents = PART_EVENTS } = deps;
  let known:
    | { readonly job: string; readonly readAt: number; readonly coverage: LandingCoverage | null }
    | undefined;

  /**
   * The coverage, read after the job has begun, so that all rows of that time are judged; kept for ten
   * minutes.
   */
  const coverageOf = async (job: string, signal: AbortSignal): Promise<LandingCoverage | null> => {
    if (known?.job !== job || now() - known.readAt > COVERAGE_HOLDS_MS) {
      known = { job, readAt: now(), coverage: await landing.coverage(signal) };
    }
    return known.coverage;
  };

  const splitLanding = async ({ data, signal }: JobContext<BackfillData>): Promise<LandingPart[]> => {
    const counted = [];
    for (const range of rangesOf(data.window, maxTimeAheadMs)) {
      const width = range.by === "offsets" ? STRETCH_OFFSETS : STRETCH_MICROS;
      counted.push({ range, counts: await reader.count(wholeSelection(data, range), width, signal) });
    }
    const total = counted.flatMap(({ counts }) => counts).reduce((sum, stretch) => sum + stretch.events, 0);
    const size = Math.max(partEvents, Math.ceil(total / MAX_PARTS));
    return counted.flatMap(({ range, counts }) => cutIntoParts(range, counts, size));
  };

  const correctPart = async (context: PartContext, part: LandingPart, job: string): Promise<PartResult> => {
    const { data, signal, log } = context;
    const coverage = await coverageOf(job, signal);
    let done = 0;
    const { dryRun } = data.job;
    const look = (held: AbortSignal): Promise<BackfillCounts> =>
      correct(partSelection(data.job, part), {
        dryRun,
        coverage,
        signal: held,
        log,
        onEvents: (read) => {
          done += read;
          void context.progress({ done, total: null, unit: "events" }).catch(() => {});
        },
      });
    const counts = dryRun ? await look(signal) : await exclusive.run(ROWS, signal, look);
    return { ...counts, deletableSince: coverage?.since ?? null };
  };

  const addPart = async (context: PartContext, part: SourcePart): Promise<PartResult> => {
    const { job } = context.data;
    if (job.source.kind === "landing") throw new TypeError("a part of another source");
    if (job.source.kind === "kafka") await connected(context.signal);
    let sum: BackfillCounts = emptyCounts();
    for await (const batch of sourceOf(job.source).read(part, context.signal)) {
      const startedAt = now();
      await untilQuiet(context);
      sum = addUp([sum, await events.add(batch, job, context.signal)]);
      await context.progress({ done: sum.events.read, total: null, unit: "events" });
      await throttle.pace(batch.events.length, startedAt, job.rowsPerSecond, context.signal);
    }
    return { ...sum, deletableSince: null };
  };

  const untilQuiet = ({ data, signal, progress }: PartContext): Promise<void> =>
    throttle.untilLagIs(data.job.maxLag, signal, (lag) => {
      const note = lag === null ? "waits: the lag is not known" : `waits for ingest, which lags by ${lag}`;
      void progress({ done: 0, total: null, unit: "events", note }).catch(() => {});
    });

  /** Marks in the ledger the windows whose records were all computed anew. */
  const noteWindows = async ({ source, window, clientId, dryRun }: BackfillData, signal: AbortSignal) => {
    if (source.kind !== "landing" || window?.by !== "upload" || clientId !== null || dryRun) return;
    const range = { from: Date.parse(window.from) * 1_000, to: Date.parse(window.to) * 1_000 };
    await exclusive.run(LEDGER, signal, () => windows.markBackfilled(range, now() * 1_000));
  };

  return {
    type: backfillJob,
    part: partSchema,
    partResult: partResultSchema,
    async split(context) {
      const { data, signal } = context;
      checkWindow(data);
      if (data.source.kind === "landing") return splitLanding(context);
      if (data.source.kind === "kafka") await connected(signal);
      return sourceOf(data.source).parts(data.window, signal);
    },
    async runPart(context) {
      const { job, part } = context.data;
      if (part.kind !== "landing") return addPart(context, part);
      const startedAt = now();
      await untilQuiet(context);
      const result = await correctPart(context, part, jobOf(context.id));
      await throttle.pace(result.events.read, startedAt, job.rowsPerSecond, context.signal);
      return result;
    },
    async finish({ data, signal }, results) {
      await noteWindows(data, signal);
      return {
        ...addUp(results),
        dryRun: data.dryRun,
        parts: results.length,
        deletableSince: instantOf(latest(results.map(({ deletableSince }) => deletableSince))),
      };
    },
  };
};

/** Id of the job of a part. */
const jobOf = (partId: string): string => partId.replace(/-part-\d+$/, "");

/** The latest instant; null when one is unknown or there are none. */
const latest = (instants: readonly (Micros | null)[]): Micros | null => {
  let found: Micros | null = null;
  for (const instant of instants) {
    if (instant === null) return null;
    found = Math.max(found ?? 0, instant);
  }
  return found;
};

const instantOf = (instant: Micros | null): string | null =>
  instant === null ? null : formatTimestampZ(instant);
