import type { BusMessage, TopicPartition } from "../message.ts";
import type { DamageCheck } from "./damage-check.ts";
import { createRecordReader, type RecordReader } from "./record.ts";
import { FORMAT, type RecordBatch } from "./record-batch.ts";
import { runsOf } from "./record-runs.ts";
import { unpack } from "./unpack.ts";
import { unreadableMessage } from "./unreadable.ts";

/** Otherwise only its place counts. */
export type FetchedBatch = { readonly batch: RecordBatch; readonly isCommitted: boolean };

/** `nextOffset`: also behind what is left out. */
export type RecordSlice = { readonly messages: BusMessage[]; readonly nextOffset: number };

const SLICE_BYTES = 4 * 1024 * 1024;
/** An empty slice is a sign of life. */
const SILENCE_MS = 50;

const WRONG_CHECKSUM = "the checksum is wrong";

/** Others come from the bytes. */
const isBug = (error: unknown): boolean => error instanceof TypeError || error instanceof ReferenceError;

export const lastOffsetOf = ({ offset, unreadable }: BusMessage): number => unreadable?.lastOffset ?? offset;

/** Unreadable parts are one message; ends at a damaged batch. */
export async function* readSlices(
  batches: readonly FetchedBatch[],
  options: {
    readonly where: TopicPartition;
    readonly from: number;
    readonly size: () => number;
    readonly isLasting: DamageCheck;
    readonly now?: () => number;
  },
): AsyncGenerator<RecordSlice> {
  const { where, from, size, isLasting, now = () => performance.now() } = options;
  let messages: BusMessage[] = [];
  let bytes = 0;
  let nextOffset = from;
  let given = from;
  let givenAt = now();

  const isFull = (): boolean => messages.length >= size() || bytes >= SLICE_BYTES;
  const isSilent = (): boolean => now() - givenAt > SILENCE_MS;
  function* give(): Generator<RecordSlice> {
    const slice = { messages, nextOffset };
    messages = [];
    bytes = 0;
    given = nextOffset;
    yield slice;
    givenAt = now();
  }
  const take = (message: BusMessage): void => {
    messages.push(message);
    bytes += message.bytes ?? 0;
    nextOffset = lastOffsetOf(message) + 1;
  };
  function* takeAll(reader: RecordReader, run: Buffer): Generator<RecordSlice> {
    for (const message of reader.read(run)) {
      if (message.offset >= nextOffset) take(message);
      if (isFull() || isSilent()) yield* give();
    }
  }
  async function* readBatch(batch: RecordBatch): AsyncGenerator<RecordSlice> {
    if (batch.format !== FORMAT) throw new RangeError(`format ${batch.format} of Kafka before 0.11`);
    const reader = createRecordReader(where, batch);
    const unpacked = unpack(batch);
    if (Buffer.isBuffer(unpacked)) yield* takeAll(reader, unpacked);
    else {
      for await (const run of runsOf(unpacked)) {
        yield* takeAll(reader, run);
        if (isSilent()) yield* give();
      }
    }
    reader.end();
  }

  for (const [index, { batch, isCommitted }] of batches.entries()) {
    const hasNext = index + 1 < batches.length;
    if (!batch.isIntact && (batch.lastOffset >= nextOffset || !hasNext)) {
      if (await isLasting(where, nextOffset)) {
        const lastOffset = Math.max(nextOffset, batch.lastOffset);
        take(unreadableMessage(where, batch, { offset: nextOffset, lastOffset, why: WRONG_CHECKSUM }));
      }
      // It may have ended a transaction: what counts behind it is unknown.
      break;
    }
    if (batch.lastOffset < nextOffset) continue;
    if (isCommitted) {
      try {
        yield* readBatch(batch);
      } catch (error) {
        if (isBug(error)) throw error;
        const why = error instanceof Error ? error.message : String(error);
        const offset = Math.max(nextOffset, batch.firstOffset);
        const { lastOffset } = batch;
        // All its offsets may be taken.
        if (offset <= lastOffset) take(unreadableMessage(where, batch, { offset, lastOffset, why }));
      }
    }
    nextOffset = Math.max(nextOffset, batch.lastOffset + 1);
  }
  if (given < nextOffset) yield* give();
}
