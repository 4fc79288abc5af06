import type { Consumer, MessageSlice } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import { createBatchFiller } from "./batch/batch-filler.ts";
import type { BufferBudget } from "./batch/buffer-budget.ts";
import type { ClientMonitor } from "./monitor/client-monitor.ts";
import type { DeadLetterSink } from "./flush/dead-letter.ts";
import type { SuppressionGate } from "@conversation-export/suppression";
import type { EventTraces } from "./event-traces.ts";
import { createFlush } from "./flush/flush.ts";
import type { InFlight } from "@conversation-export/warehouse";
import type { IngestMetrics } from "./ingest-metrics.ts";
import type { KeepTrying } from "./flush/keep-trying.ts";
import type { LandingGap } from "./flush/landing-gap.ts";
import type { Sink } from "./flush/sink.ts";
import {
  type BatchLimits,
  createBatchCutter,
  createTopicBatches,
  isFull,
  type TopicBatch,
} from "./batch/topic-batch.ts";
import { createWriteBatch } from "./flush/write-batch.ts";

export type LaneLimits = BatchLimits & {
  readonly maxTimeAheadMs: number;
};

/** Batches of a topic settle in their order (docs/decisions/0004). */
export type Lane = {
  /** Returns how many the buffer budget had room for. */
  take(slice: MessageSlice): number;
  /** Resolves when all is settled or the lane has given up. */
  drain(): Promise<void>;
  /** Older batches not yet flushing are dropped: their messages come again. */
  fence(epoch: number): void;
  /** ms since the epoch. */
  oldestAt(): number | null;
  abort(): void;
};

/** With landing, the next batch lands while the tables of this one are written. */
const MAX_IN_FLIGHT_WITH_LANDING = 2;

export type LaneDeps = {
  readonly topic: string;
  readonly type: EventType;
  readonly limits: LaneLimits;
  readonly budget: BufferBudget;
  readonly landingDays: number | null;
  readonly gate: Pick<SuppressionGate, "ticket" | "judgement" | "suspects" | "suppresses">;
  readonly clients: Pick<ClientMonitor, "note">;
  readonly gap: LandingGap | null;
  readonly sink: Sink;
  readonly inFlight: Pick<InFlight, "during">;
  readonly keepTrying: KeepTrying;
  readonly deadLetters: DeadLetterSink;
  readonly traces: EventTraces | null;
  readonly commit: Consumer["commit"];
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => number;
  /** Only for bugs. */
  readonly onFatal: (error: unknown) => void;
};

export const createLane = (deps: LaneDeps): Lane => {
  const { topic, limits, budget, metrics, onFatal } = deps;
  const stop = new AbortController();
  const maxInFlight = deps.landingDays === null ? 1 : MAX_IN_FLIGHT_WITH_LANDING;
  const waiting: TopicBatch[] = [];
  let idle: PromiseWithResolvers<void> | undefined;

  const batches = createTopicBatches(deps);
  const filler = createBatchFiller({ ...deps, maxTimeAheadMs: limits.maxTimeAheadMs });
  const cutter = createBatchCutter({ batches, limits, now: deps.now, onDue: () => pump() });
  const flush = createFlush({ ...deps, write: createWriteBatch({ ...deps, filler }) });
  /** Oldest first. */
  const flushing: TopicBatch[] = [];
  /** Settles after all flushes; rejects when one failed. */
  let last: Promise<void> = Promise.resolve();

  const settle = async (batch: TopicBatch, before: Promise<void>): Promise<void> => {
    const { reusable } = await flush(batch, before, stop.signal);
    if (reusable) batches.reuse(batch);
  };

  const beginFlush = (batch: TopicBatch): void => {
    flushing.push(batch);
    const before = last;
    const { trace, rows, sources, deadLetters } = batch;
    const size = { records: sources.length + deadLetters.length, bytes: rows.bytes() };
    last = trace === null ? settle(batch, before) : trace.flush(size, () => settle(batch, before));
    last
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        abort();
        onFatal(error);
      })
      .finally(() => {
        flushing.splice(flushing.indexOf(batch), 1);
        budget.release(batch.budgetedBytes);
        pump();
      });
  };

  const unsettled = (): TopicBatch[] => {
    const current = cutter.current();
    const cut = [...flushing, ...waiting];
    return current === undefined ? cut : [...cut, current];
  };

  const cut = (): void => {
    const batch = cutter.cut();
    if (batch !== undefined) waiting.push(batch);
  };

  const pump = (): void => {
    if (stop.signal.aborted) return;
    if (flushing.length === 0 && waiting.length === 0 && cutter.isDue()) cut();
    while (flushing.length < maxInFlight) {
      const batch = waiting.shift();
      if (batch === undefined) break;
      beginFlush(batch);
    }
    if (flushing.length === 0 && cutter.current() === undefined) idle?.resolve();
  };

  const forget = (batch: TopicBatch): void => {
    batch.trace?.forget();
    budget.release(batch.budgetedBytes);
  };

  const abort = (): void => {
    cutter.stop();
    stop.abort(new Error("ingest stops"));
    for (const batch of [...waiting, cutter.current()]) batch?.trace?.forget();
    idle?.resolve();
  };

  return {
    take: (slice) => {
      let taken = 0;
      for (const message of slice.messages) {
        if (budget.isFull()) {
          // Only settled batches make room, so this one must not wait.
          cutter.makeDue();
          break;
        }
        const batch = cutter.openFor(slice.epoch);
        filler.add(batch, message);
        taken += 1;
        if (isFull(batch, limits)) cut();
      }
      metrics.consumed.inc({ topic }, taken);
      cutter.setBehind(slice.highWatermark - slice.nextOffset >= limits.maxRecords / 10);
      if (taken === slice.messages.length) {
        // Control records may follow the last message; their offset goes with the newest or an empty batch.
        const carrier = cutter.current() ?? waiting.at(-1) ?? cutter.openFor(slice.epoch);
        carrier.offsets.set(slice.partition, slice.nextOffset);
      }
      pump();
      return taken;
    },
    drain: async () => {
      if (stop.signal.aborted) return;
      cutter.makeDue();
      pump();
      if (unsettled().length === 0) return;
      idle ??= Promise.withResolvers();
      await idle.promise;
      idle = undefined;
    },
    fence: (epoch) => {
      const current = cutter.current();
      if (current !== undefined && current.epoch < epoch) {
        cutter.cut();
        forget(current);
      }
      for (let index = waiting.length - 1; index >= 0; index -= 1) {
        const batch = waiting[index];
        if (batch === undefined || batch.epoch >= epoch) continue;
        forget(batch);
        waiting.splice(index, 1);
      }
      pump();
    },
    oldestAt: () => unsettled()[0]?.openedAt ?? null,
    abort,
  };
};
