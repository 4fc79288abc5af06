import type { WriteTicket } from "@conversation-export/domain";
import { setTimeout as sleep } from "node:timers/promises";
import { unlessAborted } from "@conversation-export/runtime";
import { type InFlight, isStaleTicket } from "@conversation-export/warehouse";
import type { BatchFiller } from "../batch/batch-filler.ts";
import type { IngestMetrics } from "../ingest-metrics.ts";
import { isBug, type KeepTrying } from "./keep-trying.ts";
import type { LandingGap } from "./landing-gap.ts";
import type { RecordRange, Sink } from "./sink.ts";
import type { TopicBatch } from "../batch/topic-batch.ts";
import type { SuppressionGate } from "@conversation-export/suppression";

/** Ranges whose ticket becomes stale begin again with another. */
export type WriteBatch = (
  batch: TopicBatch,
  before: Promise<void>,
  signal: AbortSignal,
) => Promise<{ readonly refused: readonly number[]; readonly reusable: boolean }>;

const MAX_PAUSE_MS = 5_000;

const judgedAnew = new Error("more suppressions are known than the batch was judged by");

const halves = ({ from, to }: RecordRange): RecordRange[] => {
  const middle = (from + to) >> 1;
  return [
    { from, to: middle },
    { from: middle, to },
  ];
};

/** @param deps.gap null: landing keeps every event */
export const createWriteBatch = (deps: {
  readonly gate: Pick<SuppressionGate, "ticket" | "judgement">;
  readonly gap: LandingGap | null;
  readonly filler: Pick<BatchFiller, "judge">;
  readonly sink: Sink;
  readonly inFlight: Pick<InFlight, "during">;
  readonly keepTrying: KeepTrying;
  readonly metrics: IngestMetrics;
}): WriteBatch => {
  const { gate, gap, filler, sink, inFlight, keepTrying, metrics } = deps;
  const untilDone = <T>(step: string, operation: () => Promise<T>, signal: AbortSignal): Promise<T> =>
    keepTrying({ step, signal, operation: () => unlessAborted(operation(), signal), isFinal: isBug });

  const takeTicket = async (signal: AbortSignal): Promise<WriteTicket> => {
    const ticket = await untilDone("stamp", () => gate.ticket(signal), signal);
    if (gap !== null) await untilDone("landing_gap", () => gap.cover(ticket.stamp, signal), signal);
    return ticket;
  };

  return async (batch, before, signal) => {
    const refused: number[] = [];
    let reusable = true;
    /** undefined: everything. */
    let left: RecordRange[] | undefined;
    let wasStale = false;
    let timesStale = 0;

    let wasJudgedAnew = false;

    const isJudgedBy = (judgement: number): boolean => batch.judgedBy !== null && batch.judgedBy >= judgement;
    /** May replace the rows: then everything is written again. */
    const judge = async (): Promise<void> => {
      const { rows } = batch;
      if (!isJudgedBy(gate.judgement())) await untilDone("suspects", () => filler.judge(batch), signal);
      if (batch.rows === rows) return;
      left = undefined;
      refused.length = 0;
    };

    while (batch.rows.records() > 0) {
      if (timesStale > 1) await sleep(Math.min(25 * 2 ** timesStale, MAX_PAUSE_MS), undefined, { signal });
      const ticket = await takeTicket(signal);
      try {
        const isDone = await inFlight.during(ticket.stamp, wasStale, async () => {
          await judge();
          left ??= [{ from: 0, to: batch.rows.records() }].filter(({ to }) => to > 0);
          const [range] = left;
          if (range === undefined) return true;
          // Landing does not wait for the previous batch, which may name these records' persons.
          const behind = before.then(() => {
            if (!wasJudgedAnew && !isJudgedBy(gate.judgement())) throw judgedAnew;
          });
          behind.catch(() => undefined);
          const written = await sink.write(batch.rows, range, ticket, signal, behind);
          refused.push(...written.refused);
          reusable &&= written.reusable;
          left.shift();
          timesStale = 0;
          return left.length === 0;
        });
        if (isDone) break;
      } catch (error) {
        if (error !== judgedAnew && !isStaleTicket(error)) throw error;
        reusable = false;
        if (error === judgedAnew) {
          // Only once: by now it knows the previous batch.
          wasJudgedAnew = true;
          continue;
        }
        metrics.stampedAnew.inc({});
        wasStale = true;
        timesStale += 1;
        const range = left?.[0];
        // Fewer rows may be written before readers pass their stamp.
        if (timesStale > 1 && range !== undefined && range.to - range.from > 1)
          left?.splice(0, 1, ...halves(range));
      }
    }
    return { refused, reusable };
  };
};
