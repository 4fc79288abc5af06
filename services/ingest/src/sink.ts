import { rejected } from "@conversation-export/domain";
import { isRetryable, type Logger, retry, ServiceError } from "@conversation-export/runtime";
import type { OutgoingMessage, Producer } from "@conversation-export/bus";
import { type Batch, type TableInsert, WarehouseError, type Writer } from "@conversation-export/warehouse";
import { type DeadLetter, deadLetterTopic, toDeadLetter, withoutPayload } from "./dead-letter.ts";
import type { IngestMetrics } from "./ingest-metrics.ts";

export type Sink = {
  /**
   * Writes a batch table by table, as often as it takes. `refused` holds the indexes of the records that ClickHouse
   * refuses for their data; all others are acknowledged. `smooth`: every INSERT went through at once, so nothing
   * holds on to the memory of the batch. Rejects only when `signal` aborts.
   */
  write(batch: Batch, signal: AbortSignal): Promise<{ refused: number[]; smooth: boolean }>;
  /** Sends records to the dead letters of their topic, as often as it takes. Rejects only when `signal` aborts. */
  bury(topic: string, letters: readonly DeadLetter[], signal: AbortSignal): Promise<void>;
};

const codeOf = (error: unknown): string => {
  if (error instanceof WarehouseError) return error.causeName;
  return error instanceof ServiceError ? error.code : "unknown";
};

const isRefusedData = (error: unknown): boolean =>
  error instanceof WarehouseError && error.code === "warehouse_refused_data";

const isBug = ({ cause }: Error): boolean =>
  cause instanceof TypeError || cause instanceof RangeError || cause instanceof ReferenceError;

const isFinal = (error: unknown): boolean =>
  isRefusedData(error) || (error instanceof WarehouseError && isBug(error));

const isUnsendable = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === "produce" && !error.retryable;

const never = (): boolean => false;

export const createSink = (deps: {
  readonly writer: Writer;
  readonly producer: Producer;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => Date;
}): Sink => {
  const { writer, producer, metrics, log, now } = deps;

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
        log.warn({ err: error, step, attempt, delayMs }, "will be tried again");
      },
    });

  const insert = async (one: TableInsert, signal: AbortSignal): Promise<void> => {
    const started = performance.now();
    await untilItWorks(one.table, signal, () => writer.insert(one, signal), isFinal);
    metrics.insert.observe({ table: one.table }, (performance.now() - started) / 1000);
    metrics.written.inc({ table: one.table }, one.rows);
  };

  // Versions make a repeated insert harmless, so halves may contain rows that are already written.
  const writeRange = async (
    batch: Batch,
    from: number,
    to: number,
    signal: AbortSignal,
  ): Promise<number[]> => {
    try {
      for (const one of batch.inserts(from, to)) await insert(one, signal);
      return [];
    } catch (error) {
      failures += 1;
      if (signal.aborted || !isRefusedData(error)) throw error;
      if (to - from === 1) return [from];
      const middle = (from + to) >> 1;
      const left = await writeRange(batch, from, middle, signal);
      const right = await writeRange(batch, middle, to, signal);
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
    write: async (batch, signal) => {
      if (batch.records() === 0) return { refused: [], smooth: true };
      batch.fillUpload(now().getTime() * 1000);
      const failuresBefore = failures;
      const refused = await writeRange(batch, 0, batch.records(), signal);
      return { refused, smooth: failures === failuresBefore };
    },
    bury: async (topic, letters, signal) => {
      if (letters.length === 0) return;
      const at = now();
      await send(
        deadLetterTopic(topic),
        letters.map((letter) => toDeadLetter(letter, at)),
        signal,
      );
      for (const { rejection } of letters) metrics.rejected.inc({ topic, reason: rejection.reason });
    },
  };
};

/** The rejection of a row that ClickHouse does not take. */
export const refusedByWarehouse = () =>
  rejected("refused_by_warehouse", "the warehouse refuses the row for its data");
