import type { Consumer } from "@conversation-export/bus";
import { rejected } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import type { DeadLetter, DeadLetterSink } from "./dead-letter.ts";
import type { IngestMetrics } from "../ingest-metrics.ts";
import type { TopicBatch } from "../batch/topic-batch.ts";
import type { WriteBatch } from "./write-batch.ts";

/** Rows, then dead letters, then the commit; the next batch makes up for a failed commit. */
export type Flush = (
  batch: TopicBatch,
  before: Promise<void>,
  signal: AbortSignal,
) => Promise<{ readonly reusable: boolean }>;

const POISON = rejected("refused_by_warehouse", "the warehouse refuses the row for its data");

export const createFlush = (deps: {
  readonly topic: string;
  readonly write: WriteBatch;
  readonly deadLetters: DeadLetterSink;
  readonly commit: Consumer["commit"];
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => number;
}): Flush => {
  const { topic, metrics, log, now } = deps;

  const buryPoison = (batch: TopicBatch, refused: readonly number[]): void => {
    for (const index of refused) {
      const source = batch.sources[index];
      if (source === undefined) continue;
      batch.trace?.reject(source, POISON.reason);
      batch.deadLetters.push({ source, rejection: POISON });
    }
  };

  const withTrace = ({ deadLetters, trace }: TopicBatch): readonly DeadLetter[] =>
    trace === null
      ? deadLetters
      : deadLetters.map((deadLetter) => ({ ...deadLetter, headers: trace.headersOf(deadLetter.source) }));

  const commit = async ({ epoch, offsets }: TopicBatch): Promise<void> => {
    const next = Array.from(offsets, ([partition, offset]) => ({ topic, partition, offset }));
    try {
      metrics.commits.inc({ result: await deps.commit(epoch, next) });
    } catch (error) {
      // When the messages come again they change nothing.
      metrics.commits.inc({ result: "failed" });
      log.warn({ err: error, topic }, "committing offsets failed, the next batch commits them");
    }
  };

  return async (batch, before, signal) => {
    const { refused, reusable } = await deps.write(batch, before, signal);
    // Without records, or with landing only, nothing has waited for the previous batch.
    await before;
    buryPoison(batch, refused);
    await deps.deadLetters.send(topic, withTrace(batch), signal);
    await commit(batch);
    metrics.batchRecords.observe({ topic }, batch.sources.length);
    metrics.batchAge.observe({ topic }, (now() - batch.openedAt) / 1000);
    return { reusable };
  };
};
