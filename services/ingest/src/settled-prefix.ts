import type { Flush } from "./flush.ts";
import type { TopicBatch } from "./topic-batch.ts";

/**
 * Flushes batches so that they settle in their order: when one is settled, so is everything before its
 * offsets (the settled prefix), and the offsets may be committed.
 */
export type SettledPrefix = {
  flush(batch: TopicBatch): void;
  /** The batches being flushed, oldest first. */
  inFlight(): readonly TopicBatch[];
};

/**
 * @param deps.onSettled called behind a settled batch; `reusable` as in `Sink.write`
 * @param deps.onFailed called for a batch that cannot be settled; no later one may be settled then
 * @param deps.onEnd called when a flush has ended either way
 */
export const createSettledPrefix = (deps: {
  readonly flush: Flush;
  readonly signal: AbortSignal;
  readonly onSettled: (batch: TopicBatch, reusable: boolean) => void;
  readonly onFailed: (error: unknown) => void;
  readonly onEnd: (batch: TopicBatch) => void;
}): SettledPrefix => {
  const { signal, onSettled, onFailed, onEnd } = deps;
  const inFlight: TopicBatch[] = [];
  /** Settles with the batch flushed last; rejects when it could not be settled. */
  let last: Promise<void> = Promise.resolve();

  const settle = async (batch: TopicBatch, before: Promise<void>): Promise<void> => {
    const { reusable } = await deps.flush(batch, before, signal);
    onSettled(batch, reusable);
  };

  const traced = (batch: TopicBatch, before: Promise<void>): Promise<void> => {
    const { trace, rows, sources, deadLetters } = batch;
    if (trace === null) return settle(batch, before);
    const size = { records: sources.length + deadLetters.length, bytes: rows.bytes() };
    return trace.flush(size, () => settle(batch, before));
  };

  return {
    flush: (batch) => {
      inFlight.push(batch);
      last = traced(batch, last);
      last.catch(onFailed).finally(() => {
        inFlight.splice(inFlight.indexOf(batch), 1);
        onEnd(batch);
      });
    },
    inFlight: () => inFlight,
  };
};
