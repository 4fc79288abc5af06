import { crc32 } from "node:zlib";
import { ServiceError } from "@conversation-export/runtime";
import { crc32c } from "@node-rs/crc32";
import { toOffset } from "./offset.ts";

/** Times in ms. */
export type RecordBatch = {
  readonly firstOffset: number;
  readonly lastOffset: number;
  /** Without those that were compacted away. */
  readonly count: number;
  /** 0 none, 1 gzip, 2 Snappy, 3 LZ4, 4 zstd. */
  readonly codec: number;
  readonly firstTimestamp: number;
  readonly maxTimestamp: number;
  /** LogAppendTime: `maxTimestamp` counts for all records. */
  readonly hasBrokerTime: boolean;
  readonly producerId: bigint;
  readonly isTransactional: boolean;
  readonly isControl: boolean;
  readonly records: Buffer;
  readonly format: number;
  /** false: the checksum is wrong, so only the place counts. */
  readonly isIntact: boolean;
};

export const FORMAT = 2;

/** First offset and length, which the length leaves out. */
const PREFIX = 12;
const HEADER = 61;
const OLD_HEADER = 26;
const FORMAT_AT = 16;
/** The checksum covers what follows it; the broker changes what comes before. */
const CHECKSUM_AT = 17;
const OLD_CHECKSUM_AT = 12;

const CODEC = 0x07;
const BROKER_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;

const wide = (bytes: Buffer, at: number): number => Number(bytes.readBigInt64BE(at));

const placeOf = (
  place: Pick<RecordBatch, "firstOffset" | "lastOffset" | "format" | "isIntact">,
): RecordBatch => ({
  count: place.lastOffset - place.firstOffset + 1,
  codec: 0,
  firstTimestamp: -1,
  maxTimestamp: -1,
  hasBrokerTime: false,
  producerId: -1n,
  isTransactional: false,
  isControl: false,
  records: Buffer.alloc(0),
  ...place,
});

/** Kafka before 0.11. */
const oldMessage = (bytes: Buffer, format: number): RecordBatch => {
  const offset = toOffset(bytes.readBigInt64BE(0));
  return placeOf({ firstOffset: offset, lastOffset: offset, format, isIntact: true });
};

/** Its header may be wrong, but never counts beyond the partition's end. */
const damagedBatch = (bytes: Buffer, format: number, end: number): RecordBatch => {
  const span = bytes.length < HEADER ? 0 : Math.max(0, bytes.readInt32BE(23));
  const firstOffset = Math.min(Math.max(0, wide(bytes, 0)), end - 1);
  return placeOf({ firstOffset, lastOffset: Math.min(firstOffset + span, end - 1), format, isIntact: false });
};

const isOld = (format: number): boolean => format >= 0 && format < FORMAT;

const isIntact = (bytes: Buffer, format: number): boolean => {
  if (isOld(format)) return crc32(bytes.subarray(FORMAT_AT)) === bytes.readUInt32BE(OLD_CHECKSUM_AT);
  return format === FORMAT && crc32c(bytes.subarray(CHECKSUM_AT + 4)) === bytes.readUInt32BE(CHECKSUM_AT);
};

const readBatch = (bytes: Buffer, end: number): RecordBatch => {
  const format = bytes.readInt8(FORMAT_AT);
  if (!isIntact(bytes, format)) return damagedBatch(bytes, format, end);
  if (isOld(format)) return oldMessage(bytes, format);
  const firstOffset = bytes.readBigInt64BE(0);
  const attributes = bytes.readInt16BE(21);
  return {
    firstOffset: toOffset(firstOffset),
    lastOffset: toOffset(firstOffset + BigInt(Math.max(0, bytes.readInt32BE(23)))),
    count: bytes.readInt32BE(57),
    codec: attributes & CODEC,
    firstTimestamp: wide(bytes, 27),
    maxTimestamp: wide(bytes, 35),
    hasBrokerTime: (attributes & BROKER_TIME) !== 0,
    producerId: bytes.readBigInt64BE(43),
    isTransactional: (attributes & TRANSACTIONAL) !== 0,
    isControl: (attributes & CONTROL) !== 0,
    records: bytes.subarray(HEADER),
    format,
    isIntact: true,
  };
};

const lengthOf = (rest: Buffer): number => {
  const isCut = rest.length <= FORMAT_AT;
  const length = isCut ? HEADER : PREFIX + rest.readInt32BE(8);
  const least = !isCut && isOld(rest.readInt8(FORMAT_AT)) ? OLD_HEADER : HEADER;
  if (length < least) throw new ServiceError("batch_length", `a batch of ${length} bytes has no header`);
  if (length <= rest.length) return length;
  throw new ServiceError("batch_length", `a batch of ${length} bytes is cut off after ${rest.length}`);
};

/** undefined: the batch before may have a wrong length. */
const behindDamaged = (rest: Buffer, end: number): RecordBatch | undefined => {
  try {
    const batch = readBatch(rest.subarray(0, lengthOf(rest)), end);
    return batch.isIntact ? batch : undefined;
  } catch {
    return undefined;
  }
};

const readAll = (recordSet: Buffer, end: number, batches: RecordBatch[]): void => {
  for (let rest = recordSet; rest.length > 0; ) {
    const length = lengthOf(rest);
    const batch = readBatch(rest.subarray(0, length), end);
    rest = rest.subarray(length);
    if (batch.isIntact) {
      batches.push(batch);
      continue;
    }
    const next = behindDamaged(rest, end);
    batches.push(next === undefined ? batch : { ...batch, lastOffset: next.firstOffset - 1 });
    if (next === undefined) break;
  }
};

/** Up to a cut or damaged one; throws `batch_length` or `offset_range` when that is the first. */
export const readBatches = (recordSet: Buffer, end = Number.MAX_SAFE_INTEGER): RecordBatch[] => {
  const batches: RecordBatch[] = [];
  try {
    readAll(recordSet, end, batches);
  } catch (error) {
    if (batches.length === 0 || !(error instanceof ServiceError)) throw error;
  }
  return batches;
};
