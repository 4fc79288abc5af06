import type { BusMessage } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import { type Batch, createBatch } from "@conversation-export/warehouse";
import type { DeadLetter } from "../flush/dead-letter.ts";
import type { SuppressionGate } from "@conversation-export/suppression";
import type { BatchTrace, EventTraces } from "../event-traces.ts";

/** Its offsets may be committed once rows and dead letters are stored. */
export type TopicBatch = {
  readonly epoch: number;
  readonly openedAt: number;
  /** Replaced when some records are found to be erased. */
  rows: Batch;
  /** By index in `rows`. */
  readonly sources: BusMessage[];
  readonly deadLetters: DeadLetter[];
  /** Next offset, by partition. */
  readonly offsets: Map<number, number>;
  messageBytes: number;
  budgetedBytes: number;
  readonly trace: BatchTrace | null;
  /** null: some records are not judged yet. */
  judgedBy: number | null;
};

export type BatchLimits = {
  readonly maxRecords: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
};

const MAX_SPARE = 2;
const LEAST_BYTES = 1 << 20;
const HEADROOM = 1.25;

/** Begins as large as `previous`, so that growing does not copy. */
export const createRows = (
  type: EventType,
  previous: Batch | undefined,
  landingDays: number | null,
): Batch => {
  const bytes = Math.max(LEAST_BYTES, Math.ceil((previous?.largest() ?? 0) * HEADROOM));
  return createBatch(type, bytes, { landingDays: landingDays ?? undefined });
};

export const createTopicBatches = (deps: {
  readonly topic: string;
  readonly type: EventType;
  readonly landingDays: number | null;
  readonly traces: EventTraces | null;
  readonly gate: Pick<SuppressionGate, "judgement">;
  readonly now: () => number;
}) => {
  const { topic, type, landingDays, traces, now } = deps;
  const spare: Batch[] = [];
  // Weak, because the memory of an unused batch is outside the budget.
  let previous: WeakRef<Batch> | undefined;

  const nextRows = (): Batch => {
    const rows = spare.pop() ?? createRows(type, previous?.deref(), landingDays);
    previous = new WeakRef(rows);
    return rows;
  };

  return {
    open: (epoch: number): TopicBatch => ({
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
    /** Nothing may read its rows any more. */
    reuse: ({ rows }: TopicBatch): void => {
      // A batch far below its capacity follows a rush: free its memory.
      if (spare.length >= MAX_SPARE || rows.bytes() < rows.capacity() / 8) return;
      rows.clear();
      spare.push(rows);
    },
  };
};

export const isFull = ({ rows, sources, deadLetters }: TopicBatch, limits: BatchLimits): boolean =>
  sources.length + deadLetters.length >= limits.maxRecords ||
  rows.bytes() >= limits.maxBytes ||
  rows.spansTooManyPartitions();

const CATCH_UP_FACTOR = 3;

export const createBatchCutter = (deps: {
  readonly batches: { open(epoch: number): TopicBatch };
  readonly limits: Pick<BatchLimits, "maxAgeMs">;
  readonly now: () => number;
  readonly onDue: () => void;
}) => {
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
    openFor: (epoch: number): TopicBatch => {
      if (current !== undefined) return current;
      current = batches.open(epoch);
      isDue = false;
      clearTimeout(timer);
      waitForAge(current);
      return current;
    },
    current: (): TopicBatch | undefined => current,
    cut: (): TopicBatch | undefined => {
      const batch = current;
      if (batch === undefined) return undefined;
      clearTimeout(timer);
      current = undefined;
      isDue = false;
      return batch;
    },
    makeDue: (): void => {
      isDue = true;
    },
    isDue: (): boolean => isDue,
    /** If so, batches grow older: ClickHouse gets fewer and larger parts. */
    setBehind: (value: boolean): void => {
      isBehind = value;
    },
    stop: () => clearTimeout(timer),
  };
};
