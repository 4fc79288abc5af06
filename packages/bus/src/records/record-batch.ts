import { ServiceError } from "@conversation-export/runtime";
import { toOffset } from "./offset.ts";

/** A batch as the broker keeps it: its header is read, its records are still packed. Times are in ms. */
export type RecordBatch = {
  readonly firstOffset: number;
  /** Also of a batch whose last records were compacted away. */
  readonly lastOffset: number;
  /** How many records there are, without those that were compacted away. */
  readonly count: number;
  /** The number of Kafka's protocol: 0 none, 1 gzip, 2 Snappy, 3 LZ4, 4 zstd. */
  readonly codec: number;
  readonly firstTimestamp: number;
  readonly maxTimestamp: number;
  /** The broker has set the time of all records (LogAppendTime): it is `maxTimestamp`. */
  readonly hasBrokerTime: boolean;
  readonly producerId: bigint;
  readonly isTransactional: boolean;
  readonly isControl: boolean;
  /** Records, packed. */
  readonly records: Buffer;
  /** Version of the format; only 2 is read. */
  readonly format: number;
};

export const FORMAT = 2;

/** First offset and length, which the length does not count. */
const PREFIX = 12;
const HEADER = 61;
/** The least that a message of an old format takes. */
const OLD_HEADER = 26;
const FORMAT_AT = 16;

const CODEC = 0x07;
const BROKER_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;

const wide = (bytes: Buffer, at: number): number => Number(bytes.readBigInt64BE(at));

/** A message of Kafka before 0.11, which has another header: only its place is known. */
const oldMessage = (bytes: Buffer, format: number): RecordBatch => {
  const offset = toOffset(bytes.readBigInt64BE(0));
  return {
    firstOffset: offset,
    lastOffset: offset,
    count: 1,
    codec: 0,
    firstTimestamp: -1,
    maxTimestamp: -1,
    hasBrokerTime: false,
    producerId: -1n,
    isTransactional: false,
    isControl: false,
    records: bytes.subarray(0, 0),
    format,
  };
};

const readBatch = (bytes: Buffer): RecordBatch => {
  const format = bytes.readInt8(FORMAT_AT);
  if (format !== FORMAT) return oldMessage(bytes, format);
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
  };
};

/**
 * The batches of one partition in a fetch response. The last one is left out when it is cut off.
 * @throws ServiceError `batch_length` when one is shorter than its header, so that nobody knows where the next
 * one begins; `offset_range`
 */
export const readBatches = (recordSet: Buffer): RecordBatch[] => {
  const batches: RecordBatch[] = [];
  for (let at = 0; at + FORMAT_AT < recordSet.length; ) {
    const length = PREFIX + recordSet.readInt32BE(at + 8);
    const least = recordSet.readInt8(at + FORMAT_AT) === FORMAT ? HEADER : OLD_HEADER;
    if (length < least) throw new ServiceError("batch_length", `a batch of ${length} bytes has no header`);
    const end = at + length;
    if (end > recordSet.length) break;
    batches.push(readBatch(recordSet.subarray(at, end)));
    at = end;
  }
  return batches;
};
