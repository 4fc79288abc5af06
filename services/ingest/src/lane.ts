import { type BusMessage, type MessageSlice, readMessage } from "@conversation-export/bus";
import type { EventType, ExportRecord, Ignored } from "@conversation-export/domain";
import { type Logger, retry, ServiceError } from "@conversation-export/runtime";
import { type Batch, createBatch } from "@conversation-export/warehouse";
import type { BufferBudget } from "./buffer-budget.ts";
import type { DeadLetter } from "./dead-letter.ts";
import type { BatchTrace, EventTraces } from "./event-traces.ts";
import type { IngestMetrics } from "./ingest-metrics.ts";
import { refusedByWarehouse, type Sink } from "./sink.ts";

/** What one batch settles: rows, dead letters, and the offsets that may be committed behind them. */
type Unit = {
  readonly epoch: number;
  readonly firstAt: number;
  readonly batch: Batch;
  /** The message of each record of the batch. */
  readonly sources: BusMessage[];
  readonly letters: DeadLetter[];
  /** The next offset of each partition behind this batch. */
  readonly offsets: Map<number, number>;
  /** Bytes of messages that went into it. */
  sourceBytes: number;
  /** Bytes that the budget counts for it. */
  counted: number;
  /** null: nothing is traced. */
  readonly trace: BatchTrace | null;
  /** Resolves when it is settled or forgotten. */
  readonly done: PromiseWithResolvers<void>;
};

export type LaneLimits = {
  readonly maxRecords: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** How much later than its arrival on the bus an event may claim to be. */
  readonly maxTimeAheadMs: number;
};

/**
 * The way of one topic. Batches leave one after the other, so everything before the offsets of a batch is
 * settled when it is: they are the settled prefix.
 */
export type Lane = {
  /** Takes messages until the budget is used up. Returns how many. */
  take(slice: MessageSlice): number;
  /** Sends what waits, now, and resolves when nothing is unsettled, or when the lane has given up. */
  drain(): Promise<void>;
  /**
   * Sends what waits, now, and resolves when everything that is unsettled at the call is settled or forgotten. Never
   * resolves when the lane has given up.
   */
  settled(): Promise<void>;
  /** Forgets what waits and belongs to an epoch before `epoch`: it comes again. */
  fence(epoch: number): void;
  /** When the oldest unsettled message was taken, ms since the epoch; null when there is none. */
  oldestAt(): number | null;
  /** Gives up whatever is being tried. */
  abort(): void;
};

const MAX_FIELD_LABELS = 100;
const MAX_SPARE = 2;
/** What a message costs beside its bytes. */
const MESSAGE_OVERHEAD = 200;

const bytesOf = (message: BusMessage): number => {
  let bytes = MESSAGE_OVERHEAD + (message.value?.length ?? 0) + (message.key?.length ?? 0);
  for (const name in message.headers) bytes += name.length + (message.headers[name]?.length ?? 0);
  return bytes;
};
/** With landing, the events of the next batch land while the tables of this one are written. */
const MAX_IN_FLIGHT = 2;
/** While many messages lie ahead a batch may grow this much older: fewer and larger parts. */
const CATCH_UP_FACTOR = 3;

export const createLane = (deps: {
  readonly topic: string;
  readonly type: EventType;
  readonly limits: LaneLimits;
  readonly budget: BufferBudget;
  /** For how many days events are kept as they came; null: they are not. */
  readonly landingDays: number | null;
  /** true for a record about what was erased: it is not stored. */
  readonly suppresses: (record: ExportRecord) => boolean;
  /** Resolves when what `suppresses` has noted before is stored; rejects when that failed. */
  readonly foundStored: () => Promise<void>;
  readonly sink: Sink;
  /** null: nothing is traced. */
  readonly traces: EventTraces | null;
  readonly commit: (
    epoch: number,
    offsets: readonly { topic: string; partition: number; offset: number }[],
  ) => Promise<"committed" | "fenced">;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => number;
  /** A bug: nothing is tried again. */
  readonly onFatal: (error: unknown) => void;
}): Lane => {
  const { topic, type, limits, budget, suppresses, sink, traces, metrics, log, now } = deps;
  const landingDays = deps.landingDays ?? undefined;
  const stop = new AbortController();
  const queue: Unit[] = [];
  const seenUnknownFields = new Set<string>();
  let current: Unit | undefined;
  const inFlight: Unit[] = [];
  const maxInFlight = deps.landingDays === null ? 1 : MAX_IN_FLIGHT;
  /** Settles with the unit that went last; rejects when it was not settled. */
  let last: Promise<void> = Promise.resolve();
  let due = false;
  let behind = false;
  const spare: Batch[] = [];
  let timer: NodeJS.Timeout | undefined;
  let idle: { promise: Promise<void>; resolve: () => void } | undefined;

  const waitForAge = (unit: Unit): void => {
    timer = setTimeout(() => {
      if (behind && now() - unit.firstAt < limits.maxAgeMs * CATCH_UP_FACTOR) return waitForAge(unit);
      due = true;
      pump();
    }, limits.maxAgeMs);
  };

  const open = (epoch: number): Unit => {
    const unit: Unit = {
      epoch,
      firstAt: now(),
      batch: spare.pop() ?? createBatch(type, undefined, { landingDays }),
      sources: [],
      letters: [],
      offsets: new Map(),
      sourceBytes: 0,
      counted: 0,
      trace: traces === null ? null : traces(topic),
      done: Promise.withResolvers(),
    };
    due = false;
    clearTimeout(timer);
    waitForAge(unit);
    return unit;
  };

  const seal = (): void => {
    if (current === undefined) return;
    clearTimeout(timer);
    queue.push(current);
    current = undefined;
    due = false;
  };

  const isFull = (unit: Unit): boolean =>
    unit.sources.length + unit.letters.length >= limits.maxRecords ||
    unit.batch.bytes() >= limits.maxBytes ||
    unit.batch.spansTooManyPartitions();

  // Memory is used again while batches are about as large; after a rush it is given back.
  const recycle = (batch: Batch): void => {
    if (spare.length >= MAX_SPARE || batch.bytes() < batch.capacity() / 8) return;
    batch.clear();
    spare.push(batch);
  };

  /** What is committed does not come again, and with it what was noted of it. */
  const storeFound = (): Promise<void> =>
    retry(deps.foundStored, {
      signal: stop.signal,
      maxMs: 10_000,
      retryable: () => true,
      onRetry: (error, attempt, delayMs) => {
        metrics.retries.inc({ step: "found", code: error instanceof ServiceError ? error.code : "unknown" });
        log.warn({ err: error, topic, attempt, delayMs }, "what was found of erased persons is not stored");
      },
    });

  const lettersOf = ({ letters, trace }: Unit): readonly DeadLetter[] =>
    trace === null
      ? letters
      : letters.map((letter) => ({ ...letter, headers: trace.headersOf(letter.source) }));

  const write = async (unit: Unit, after: Promise<void>): Promise<void> => {
    const { refused, smooth } = await sink.write(unit.batch, stop.signal, after);
    // A batch without records has waited for nothing.
    await after;
    for (const index of refused) {
      const source = unit.sources[index];
      if (source === undefined) continue;
      const rejection = refusedByWarehouse();
      unit.trace?.reject(source, rejection.reason);
      unit.letters.push({ source, rejection });
    }
    await sink.bury(topic, lettersOf(unit), stop.signal);
    await storeFound();
    const offsets = [...unit.offsets].map(([partition, offset]) => ({ topic, partition, offset }));
    try {
      metrics.commits.inc({ result: await deps.commit(unit.epoch, offsets) });
    } catch (error) {
      // Written and not committed: the records come again and change nothing.
      metrics.commits.inc({ result: "failed" });
      log.warn({ err: error, topic }, "offsets not committed, the next batch commits them");
    }
    metrics.batchRecords.observe({ topic }, unit.sources.length);
    metrics.batchAge.observe({ topic }, (now() - unit.firstAt) / 1000);
    if (smooth) recycle(unit.batch);
  };

  const settle = (unit: Unit, after: Promise<void>): Promise<void> => {
    const { trace, batch, sources, letters } = unit;
    if (trace === null) return write(unit, after);
    const size = { records: sources.length + letters.length, bytes: batch.bytes() };
    return trace.flush(size, () => write(unit, after));
  };

  const forget = (unit: Unit): void => {
    unit.trace?.forget();
    budget.release(unit.counted);
    unit.done.resolve();
  };

  const abort = (): void => {
    clearTimeout(timer);
    stop.abort(new Error("ingest stops"));
    for (const unit of [...queue, current]) unit?.trace?.forget();
    idle?.resolve();
  };

  const start = (unit: Unit): void => {
    inFlight.push(unit);
    last = settle(unit, last);
    last
      .then(unit.done.resolve)
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        // A later batch would commit past this one, which is not settled.
        abort();
        deps.onFatal(error);
      })
      .finally(() => {
        inFlight.splice(inFlight.indexOf(unit), 1);
        budget.release(unit.counted);
        pump();
      });
  };

  const pump = (): void => {
    if (stop.signal.aborted) return;
    if (inFlight.length === 0 && queue.length === 0 && due) seal();
    while (inFlight.length < maxInFlight) {
      const unit = queue.shift();
      if (unit === undefined) break;
      start(unit);
    }
    if (inFlight.length === 0 && current === undefined) idle?.resolve();
  };

  const noteUnknown = (fields: readonly string[]): void => {
    for (const field of fields) {
      const name = field.slice(0, 100);
      const isNew = !seenUnknownFields.has(name);
      // The names come from outside: a bounded number of them become labels.
      const known = !isNew || seenUnknownFields.size < MAX_FIELD_LABELS;
      metrics.unknownFields.inc({ topic, field: known ? name : "other" });
      if (!isNew || !known) continue;
      seenUnknownFields.add(name);
      log.warn({ topic, field: name }, "unknown field dropped");
    }
  };

  const ignore = (reason: Ignored["reason"]): void => metrics.ignored.inc({ topic, reason });

  const takeOne = (unit: Unit, message: BusMessage): void => {
    const outcome = readMessage(message, type, { maxTimeAheadMs: limits.maxTimeAheadMs, now: now() });
    unit.sourceBytes += bytesOf(message);
    if (unit.trace !== null) unit.trace.take(message, outcome);
    if (outcome.kind === "rejected") {
      unit.letters.push({ source: message, rejection: outcome });
    } else if (outcome.kind === "ignored") {
      ignore(outcome.reason);
    } else if (suppresses(outcome.record)) {
      unit.trace?.ignore(message, "suppressed");
      ignore("suppressed");
    } else {
      unit.batch.add(outcome.record, message.timestamp < 0 ? { ...message, timestamp: now() } : message);
      unit.sources.push(message);
      if (outcome.unknownFields.length > 0) noteUnknown(outcome.unknownFields);
      for (const field of outcome.unusual) metrics.unusualValues.inc({ topic, field });
    }
    unit.offsets.set(message.partition, message.offset + 1);
    const total = unit.sourceBytes + unit.batch.bytes();
    budget.add(total - unit.counted);
    unit.counted = total;
  };

  return {
    take: (slice) => {
      let taken = 0;
      for (const message of slice.messages) {
        if (budget.isFull()) {
          // A batch that is not full must not wait for messages that have no room.
          due = true;
          break;
        }
        current ??= open(slice.epoch);
        takeOne(current, message);
        taken += 1;
        if (isFull(current)) seal();
      }
      metrics.consumed.inc({ topic }, taken);
      behind = slice.highWatermark - slice.nextOffset >= limits.maxRecords / 10;
      if (taken === slice.messages.length) {
        // Control records lie behind the last message; without a batch to go with, their offset gets one of its own.
        let carrier = current ?? queue.at(-1);
        if (carrier === undefined) {
          carrier = open(slice.epoch);
          current = carrier;
        }
        carrier.offsets.set(slice.partition, slice.nextOffset);
      }
      pump();
      return taken;
    },
    drain: async () => {
      if (stop.signal.aborted) return;
      due = true;
      pump();
      if (inFlight.length === 0 && queue.length === 0 && current === undefined) return;
      if (idle === undefined) {
        const { promise, resolve } = Promise.withResolvers<void>();
        idle = { promise, resolve };
      }
      await idle.promise;
      idle = undefined;
    },
    settled: async () => {
      // What was given up may still be on its way into the warehouse.
      if (stop.signal.aborted) return new Promise(() => {});
      due = true;
      pump();
      const units = [...inFlight, ...queue, current].filter((unit) => unit !== undefined);
      await Promise.all(units.map((unit) => unit.done.promise));
    },
    fence: (epoch) => {
      if (current !== undefined && current.epoch < epoch) {
        clearTimeout(timer);
        forget(current);
        current = undefined;
      }
      for (let index = queue.length - 1; index >= 0; index -= 1) {
        const unit = queue[index];
        if (unit === undefined || unit.epoch >= epoch) continue;
        forget(unit);
        queue.splice(index, 1);
      }
      pump();
    },
    oldestAt: () => inFlight[0]?.firstAt ?? queue[0]?.firstAt ?? current?.firstAt ?? null,
    abort,
  };
};
