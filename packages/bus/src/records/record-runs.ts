import { type Cursor, LONGEST_NUMBER, MAX_RECORD_BYTES, readNumber } from "./record.ts";

const HEAD_BYTES = 3 * LONGEST_NUMBER + 1;

/** `next`: bytes of the record behind them. */
type WholeRecords = { readonly end: number; readonly next: number };

const NO_RECORDS = Buffer.alloc(0);

const hasNumber = (bytes: Buffer, from: number): boolean => bytes.subarray(from).some((byte) => byte < 0x80);

/** `next` is 1 more than there is when the record's length is cut off. */
const wholeRecordsIn = (bytes: Buffer): WholeRecords => {
  let end = 0;
  for (;;) {
    const cursor: Cursor = { bytes, at: end };
    if (bytes.length - end < LONGEST_NUMBER && !hasNumber(bytes, end))
      return { end, next: bytes.length - end + 1 };
    const length = readNumber(cursor);
    if (length < 0) throw new RangeError("a record has a negative length");
    const next = cursor.at + length;
    if (next > bytes.length) return { end, next: next - end };
    end = next;
  }
};

/** Of a too large record only the head; throws RangeError for a cut record. */
export async function* runsOf(chunks: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let have = 0;
  let need = 1;
  let skip = 0;
  for await (const given of chunks) {
    const chunk = given.subarray(skip);
    skip -= given.length - chunk.length;
    parts.push(chunk);
    have += chunk.length;
    if (have < need) {
      yield NO_RECORDS;
      continue;
    }
    const bytes = parts.length === 1 ? chunk : Buffer.concat(parts, have);
    const { end, next } = wholeRecordsIn(bytes);
    const rest = bytes.length - end;
    const isTooLarge = next > MAX_RECORD_BYTES + LONGEST_NUMBER;
    const isPassed = isTooLarge && rest >= HEAD_BYTES;
    const until = isPassed ? end + HEAD_BYTES : end;
    yield bytes.subarray(0, until);
    skip = isPassed ? next - rest : 0;
    need = isPassed ? 1 : isTooLarge ? HEAD_BYTES : next;
    have = isPassed ? 0 : rest;
    parts = have === 0 ? [] : [bytes.subarray(end)];
  }
  if (have > 0 || skip > 0) throw new RangeError("the records of a batch are cut off");
}
