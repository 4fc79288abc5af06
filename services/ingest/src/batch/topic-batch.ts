import type { BusMessage } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import { type Batch, createBatch } from "@conversation-export/warehouse";
import type { DeadLetter } from "../flush/dead-letter.ts";
import type { SuppressionGate } from "@conversation-export/suppression";
import type { BatchTrace, EventTraces } from "../event-traces.ts";

/** One batch of a topic: rows, dead letters, and the offsets that may be committed once both are stored. */
export type TopicBatch = {
  /** The assignment of partitions under which its messages came. */
  readonly epoch: number;
  /** When it was opened, ms since the epoch. */
  readonly openedAt: number;
  /** Others once some of its records are found to be erased. */
  rows: Batch;
  /** The message of each record of `rows`, by index. */
  readonly sources: BusMessage[];
  readonly deadLetters: DeadLetter[];
  /** The next offset of each partition behind this batch. */
  readonly offsets: Map<number, number>;
  /** Bytes of all messages taken into it. */
  messageBytes: number;
  /** Bytes that it holds in the buffer budget. */
  budgetedBytes: number;
  /** null when nothing is traced. */
  readonly trace: BatchTrace | null;
  /** The judgement by which its records were judged, or an earlier one; null: some are not judged yet. */
  judgedBy: number | null;
};

export type BatchLimits = {
  readonly maxRecords: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
};

export type TopicBatches = {
  open(epoch: number): TopicBatch;
  /** Takes the memory of a settled batch back. Nothing may read its rows any more. */
  reuse(batch: TopicBatch): void;
};

const MAX_SPARE = 2;
const LEAST_BYTES = 1 << 20;
/** Batches are cut by records, so their bytes differ a little. */
const HEADROOM = 1.25;

/**
 * Rows of a batch that begin as large as `previous`, so that they are not copied while they grow to its size.
 * @param landingDays for how many days landing keeps the events; null when it is off
 */
export const createRows = (
  type: EventType,
  previous: Batch | undefined,
  landingDays: number | null,
): Batch => {
  const bytes = Math.max(LEAST_BYTES, Math.ceil((previous?.largest() ?? 0) * HEADROOM));
  return createBatch(type, bytes, { landingDays: landingDays ?? undefined });
};

/**
 * @param deps.landingDays for how many days landing keeps the events; null when it is off
 * @param deps.now milliseconds since the epoch
 */
export const createTopicBatches = (deps: {
  readonly topic: string;
  readonly type: EventType;
  readonly landingDays: number | null;
  readonly traces: EventTraces | null;
  readonly gate: Pick<SuppressionGate, "judgement">;
  readonly now: () => number;
}): TopicBatches => {
  const { topic, type, landingDays, traces, now } = deps;
  const spare: Batch[] = [];
  // A batch that nobody uses any longer is outside the budget, so nothing here may keep its memory.
  let previous: WeakRef<Batch> | undefined;

  const nextRows = (): Batch => {
    const rows = spare.pop() ?? createRows(type, previous?.deref(), landingDays);
    previous = new WeakRef(rows);
    return rows;
  };

  return {
    open: (epoch) => ({
      epoch,
      openedAt: now(),
      rows: nextRows(),
      sources: [],
      deadLetters: [],
      offsets: new Map(),
      messageBytes: 0,
      budgetedBytes: 0,
      trace: traces === null ? null : traces(topic),
      judgedBy: deps.gate.judgement(),
    }),
    reuse: ({ rows }) => {
      // A batch far below its capacity follows a rush: its memory is given back instead.
      if (spare.length >= MAX_SPARE || rows.bytes() < rows.capacity() / 8) return;
      rows.clear();
      spare.push(rows);
    },
  };
};

/** True when the batch must be cut: by messages, by bytes of rows, or by partitions of a table. */
export const isFull = ({ rows, sources, deadLetters }: TopicBatch, limits: BatchLimits): boolean =>
  sources.length + deadLetters.length >= limits.maxRecords ||
  rows.bytes() >= limits.maxBytes ||
  rows.spansTooManyPartitions();

/** Holds the batch that is being filled and says when it is due by age. */
export type BatchCutter = {
  /** The batch being filled, opened under `epoch` when there is none. */
  openFor(epoch: number): TopicBatch;
  /** The batch being filled; undefined when there is none. */
  current(): TopicBatch | undefined;
  /** Ends the filling and gives the batch; undefined when there is none. */
  cut(): TopicBatch | undefined;
  /** The current batch leaves at the next chance, however small it is. */
  makeDue(): void;
  isDue(): boolean;
  /** `isBehind`: many messages lie ahead, so batches may grow older and larger. */
  setBehind(isBehind: boolean): void;
  /** Stops the clock of the current batch. */
  stop(): void;
};

/** Fewer and larger parts in ClickHouse while catching up: a batch may grow this many times older. */
const CATCH_UP_FACTOR = 3;

/** @param deps.onDue called when the current batch has reached its age */
export const createBatchCutter = (deps: {
  readonly batches: Pick<TopicBatches, "open">;
  readonly limits: Pick<BatchLimits, "maxAgeMs">;
  readonly now: () => number;
  readonly onDue: () => void;
}): BatchCutter => {
  const { batches, limits, now, onDue } = deps;
  let current: TopicBatch | undefined;
  let isDue = false;
  let isBehind = false;
  let timer: NodeJS.Timeout | undefined;

  const waitForAge = (batch: TopicBatch): void => {
    timer = setTimeout(() => {
      if (isBehind && now() - batch.openedAt < limits.maxAgeMs * CATCH_UP_FACTOR) return waitForAge(batch);
      isDue = true;
      onDue();
    }, limits.maxAgeMs);
  };

  return {
    openFor: (epoch) => {
      if (current !== undefined) return current;
      current = batches.open(epoch);
      isDue = false;
      clearTimeout(timer);
      waitForAge(current);
      return current;
    },
    current: () => current,
    cut: () => {
      const batch = current;
      if (batch === undefined) return undefined;
      clearTimeout(timer);
      current = undefined;
      isDue = false;
      return batch;
    },
    makeDue: () => {
      isDue = true;
    },
    isDue: () => isDue,
    setBehind: (value) => {
      isBehind = value;
    },
    stop: () => clearTimeout(timer),
  };
};
