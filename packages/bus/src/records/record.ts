import type { BusHeaders, BusMessage, TopicPartition } from "../message.ts";
import { headersOf } from "./headers.ts";
import type { RecordBatch } from "./record-batch.ts";
import { unreadableMessage } from "./unreadable.ts";

export type Cursor = { readonly bytes: Buffer; at: number };

const NO_HEADERS: BusHeaders = Object.freeze({});
/** A few KB packed can become as much. */
export const MAX_RECORD_BYTES = 16 * 1024 * 1024;
/** Each takes more memory than its bytes. */
const MAX_HEADERS = 50_000;
const HEADER_OVERHEAD = 100;
/** Of 64 bits. */
export const LONGEST_NUMBER = 10;

/** Zigzag, exact up to 2^53. */
export const readNumber = (cursor: Cursor): number => {
  let value = 0;
  let unit = 1;
  for (let index = 0; index < LONGEST_NUMBER; index += 1) {
    const byte = cursor.bytes[cursor.at];
    if (byte === undefined) break;
    cursor.at += 1;
    value += (byte & 0x7f) * unit;
    if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    unit *= 128;
  }
  throw new RangeError("a number in a record is cut off or too long");
};

const readBytes = (cursor: Cursor): Buffer | null => {
  const length = readNumber(cursor);
  if (length < 0) return null;
  const start = cursor.at;
  if (start + length > cursor.bytes.length) throw new RangeError("a record is cut off");
  cursor.at = start + length;
  return cursor.bytes.subarray(start, cursor.at);
};

const readHeaders = (cursor: Cursor, count: number): BusHeaders => {
  if (count <= 0) return NO_HEADERS;
  const list: { key: string; value: Buffer | null }[] = [];
  for (let index = 0; index < count; index += 1) {
    list.push({ key: readBytes(cursor)?.toString() ?? "", value: readBytes(cursor) });
  }
  return headersOf(list);
};

/** Offsets ascend, and there are as many as the header says. */
const createOffsetCheck = ({ firstOffset, lastOffset, count }: RecordBatch) => {
  let seen = 0;
  let lowest = firstOffset;
  return {
    take: (offset: number): void => {
      if (offset < lowest || offset > lastOffset) throw new RangeError("a record has a wrong offset");
      if (seen >= count) throw new RangeError(`a batch has more than its ${count} records`);
      // All from the gap on is uncertain.
      if (seen + 1 + lastOffset - offset < count) throw tooFew(count);
      seen += 1;
      lowest = offset + 1;
    },
    end: (): void => {
      if (seen < count) throw tooFew(count);
    },
  };
};

const tooFew = (count: number): RangeError => new RangeError(`a batch has fewer than its ${count} records`);

export type RecordReader = {
  /** The last may be a cut head; throws RangeError when the bytes do not fit the batch. */
  read(bytes: Buffer): Generator<BusMessage>;
  end(): void;
};

export const createRecordReader = (where: TopicPartition, batch: RecordBatch): RecordReader => {
  const { topic, partition } = where;
  const { firstOffset, firstTimestamp, maxTimestamp, hasBrokerTime } = batch;
  const check = createOffsetCheck(batch);
  const overLimit = (offset: number, why: string): BusMessage =>
    unreadableMessage(where, batch, { offset, lastOffset: offset, why });

  function* read(bytes: Buffer): Generator<BusMessage> {
    const cursor: Cursor = { bytes, at: 0 };
    while (cursor.at < bytes.length) {
      const start = cursor.at;
      const length = readNumber(cursor);
      const isTooLarge = length > MAX_RECORD_BYTES;
      const end = cursor.at + length;
      if (length < 0 || (end > bytes.length && !isTooLarge)) throw new RangeError("a record is cut off");
      cursor.at += 1;
      const timeDelta = readNumber(cursor);
      const offset = firstOffset + readNumber(cursor);
      check.take(offset);
      if (isTooLarge) {
        cursor.at = end;
        yield overLimit(offset, `a record of ${length} bytes is too large`);
        continue;
      }
      const key = readBytes(cursor);
      const value = readBytes(cursor);
      const count = readNumber(cursor);
      if (count > MAX_HEADERS) {
        cursor.at = end;
        yield overLimit(offset, `a record of ${count} headers has too many`);
        continue;
      }
      const headers = readHeaders(cursor, count);
      if (cursor.at > end) throw new RangeError("a record is longer than it says");
      cursor.at = end;
      const timestamp = hasBrokerTime ? maxTimestamp : firstTimestamp + timeDelta;
      const takes = end - start + Math.max(0, count) * HEADER_OVERHEAD;
      yield { topic, partition, offset, key, value, headers, timestamp, hasBrokerTime, bytes: takes };
    }
  }
  return { read, end: () => check.end() };
};
