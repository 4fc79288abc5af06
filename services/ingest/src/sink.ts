import { deadLetterTopic, type Micros, rejected } from "@conversation-export/domain";
import { activeSpan, isRetryable, type Logger, retry, ServiceError } from "@conversation-export/runtime";
import type { OutgoingMessage, Producer } from "@conversation-export/bus";
import {
  type Batch,
  type TableInsert,
  WarehouseError,
  type Writer,
  type WriteTicket,
} from "@conversation-export/warehouse";
import { type DeadLetter, toDeadLetter, withoutPayload } from "./dead-letter.ts";
import { sendInSpan } from "./event-traces.ts";
import type { IngestMetrics } from "./ingest-metrics.ts";
import type { LandingGap } from "./landing-gap.ts";

export type Sink = {
  /**
   * Writes a batch table by table, as often as it takes; with a new instant of upload when it has waited for more than
   * a minute, which then is that of all its tables. `refused` holds the indexes of the records that ClickHouse
   * refuses for their data; all others are acknowledged. `smooth`: every INSERT went through at once, so nothing
   * holds on to the memory of the batch. Events land at once, the tables that readers see are written `after` the batch
   * before this one. Rejects only when `signal` aborts or `after` rejects.
   */
  write(
    batch: Batch,
    signal: AbortSignal,
    after?: Promise<unknown>,
  ): Promise<{ refused: number[]; smooth: boolean }>;
  /** Sends records to the dead letters of their topic, as often as it takes. Rejects only when `signal` aborts. */
  bury(topic: string, letters: readonly DeadLetter[], signal: AbortSignal): Promise<void>;
  /** The oldest instant of upload of the batches that are being written; null when none is. */
  oldestUpload(): Micros | null;
};

/** What decides whether this process may write. */
export type WriteGate = {
  /** Resolves while rows may be inserted, waits otherwise. Rejects when `signal` aborts. */
  untilOpen(signal: AbortSignal): Promise<WriteTicket>;
};

/** The instant of upload that stands in the rows of a batch. */
type Upload = { instant: Micros };

const LANDING = "landing";
const MAX_UPLOAD_AGE_MICROS = 60_000_000;
const tooOld = new Error("the instant of upload is too old");

const codeOf = (error: unknown): string => {
  if (error instanceof WarehouseError) return error.causeName;
  return error instanceof ServiceError ? error.code : "unknown";
};

const isRefusedData = (error: unknown): boolean =>
  error instanceof WarehouseError && error.code === "warehouse_refused_data";

const isBug = ({ cause }: Error): boolean =>
  cause instanceof TypeError || cause instanceof RangeError || cause instanceof ReferenceError;

const isFinal = (error: unknown): boolean =>
  error === tooOld || isRefusedData(error) || (error instanceof WarehouseError && isBug(error));

const isUnsendable = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === "produce" && !error.retryable;

const never = (): boolean => false;

export const createSink = (deps: {
  readonly writer: Writer;
  readonly producer: Producer;
  readonly gate: WriteGate;
  /** null when every event is kept in the landing table. */
  readonly gap: LandingGap | null;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => Date;
}): Sink => {
  const { writer, producer, gate, gap, metrics, log, now } = deps;
  const uploads = new Set<Upload>();

  let failures = 0;

  const untilItWorks = <T>(
    step: string,
    signal: AbortSignal,
    operation: () => Promise<T>,
    givesUp: (error: unknown) => boolean,
  ): Promise<T> =>
    retry(operation, {
      signal,
      maxMs: 10_000,
      // What is no fault of the data passes with time or with an operator's hand: nothing is given up.
      retryable: (error) => isRetryable(error) || !givesUp(error),
      onRetry: (error, attempt, delayMs) => {
        failures += 1;
        metrics.retries.inc({ step, code: codeOf(error) });
        activeSpan()?.addEvent("retry", { step, attempt, code: codeOf(error) });
        log.warn({ err: error, step, attempt, delayMs }, "will be tried again");
      },
    });

  const micros = (): Micros => now().getTime() * 1000;

  const stamp = async (batch: Batch, upload: Upload, signal: AbortSignal): Promise<void> => {
    if (gap !== null) await untilItWorks("landing_gap", signal, () => gap.cover(signal), isFinal);
    upload.instant = micros();
    batch.fillUpload(upload.instant);
  };

  const insert = async (one: TableInsert, upload: Upload, signal: AbortSignal): Promise<void> => {
    const started = performance.now();
    const attempt = async (): Promise<void> => {
      const ticket = await gate.untilOpen(signal);
      if (micros() - upload.instant > MAX_UPLOAD_AGE_MICROS) throw tooOld;
      await writer.insert(one, signal, ticket);
    };
    await untilItWorks(one.table, signal, attempt, isFinal);
    metrics.insert.observe({ table: one.table }, (performance.now() - started) / 1000);
    metrics.written.inc({ table: one.table }, one.rows);
  };

  // Versions make a repeated insert harmless, so halves may contain rows that are already written.
  const writeRange = async (
    batch: Batch,
    upload: Upload,
    range: {
      readonly from: number;
      readonly to: number;
      readonly landedAt: Micros | null;
      readonly after: Promise<unknown> | undefined;
    },
    signal: AbortSignal,
  ): Promise<number[]> => {
    const { from, to, after } = range;
    let { landedAt } = range;
    try {
      for (const one of batch.inserts(from, to)) {
        if (one.table === LANDING && landedAt === upload.instant) continue;
        if (one.table !== LANDING) await after;
        await insert(one, upload, signal);
        if (one.table === LANDING) landedAt = upload.instant;
      }
      return [];
    } catch (error) {
      failures += 1;
      if (error === tooOld) {
        metrics.stampedAnew.inc({});
        await stamp(batch, upload, signal);
        // From its first table, so that all tables say the same instant.
        return writeRange(batch, upload, { from, to, landedAt, after }, signal);
      }
      if (signal.aborted || !isRefusedData(error)) throw error;
      if (to - from === 1) return [from];
      const middle = (from + to) >> 1;
      const left = await writeRange(batch, upload, { from, to: middle, landedAt, after }, signal);
      const right = await writeRange(batch, upload, { from: middle, to, landedAt, after }, signal);
      return [...left, ...right];
    }
  };

  // A letter that its topic will never take, as too large, leaves a note of its place there: the payload is where
  // it came from, and its neighbours go on.
  const send = async (
    topic: string,
    messages: readonly OutgoingMessage[],
    signal: AbortSignal,
  ): Promise<void> => {
    try {
      await untilItWorks("dead_letter", signal, () => producer.send(topic, messages), isUnsendable);
    } catch (error) {
      const [first] = messages;
      if (signal.aborted || !isUnsendable(error) || first === undefined) throw error;
      if (messages.length > 1) {
        for (const message of messages) await send(topic, [message], signal);
        return;
      }
      log.error({ err: error, topic }, "a dead letter is not taken, a note without its payload is sent");
      await untilItWorks("dead_letter", signal, () => producer.send(topic, [withoutPayload(first)]), never);
    }
  };

  return {
    write: async (batch, signal, after) => {
      if (batch.records() === 0) return { refused: [], smooth: true };
      const failuresBefore = failures;
      const upload: Upload = { instant: micros() };
      uploads.add(upload);
      try {
        await stamp(batch, upload, signal);
        const whole = { from: 0, to: batch.records(), landedAt: null, after };
        const refused = await writeRange(batch, upload, whole, signal);
        return { refused, smooth: failures === failuresBefore };
      } finally {
        uploads.delete(upload);
      }
    },
    bury: async (topic, letters, signal) => {
      if (letters.length === 0) return;
      const at = now();
      const to = deadLetterTopic(topic);
      const messages = letters.map((letter) => toDeadLetter(letter, at));
      await sendInSpan(to, messages.length, () => send(to, messages, signal));
      for (const { rejection } of letters) metrics.rejected.inc({ topic, reason: rejection.reason });
    },
    oldestUpload: () =>
      uploads.size === 0 ? null : Math.min(...Array.from(uploads, ({ instant }) => instant)),
  };
};

/** The rejection of a row that ClickHouse does not take. */
export const refusedByWarehouse = () =>
  rejected("refused_by_warehouse", "the warehouse refuses the row for its data");
