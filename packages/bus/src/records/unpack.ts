import { createGunzip, gunzipSync } from "node:zlib";
import { unpackLz4 } from "./lz4.ts";
import type { RecordBatch } from "./record-batch.ts";
import { unpackSnappy } from "./snappy.ts";
import { streamZstd, unpackZstd } from "./zstd.ts";

export type Unpacked = Buffer | AsyncIterable<Buffer> | Iterable<Buffer>;

export const WHOLE_BYTES = 8 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";

async function* streamGzip(packed: Buffer): AsyncGenerator<Buffer> {
  const stream = createGunzip({ chunkSize: CHUNK_BYTES });
  stream.end(packed);
  for await (const chunk of stream) yield chunk as Buffer;
}

/** Synchronous: a trip to the thread pool takes longer. */
const wholeOrStreamed = (whole: () => Buffer, stream: () => AsyncIterable<Buffer>): Unpacked => {
  try {
    return whole();
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    return stream();
  }
};

/** Holds about `WHOLE_BYTES` at a time; also the stream throws. */
export const unpack = ({ codec, records }: Pick<RecordBatch, "codec" | "records">): Unpacked => {
  switch (codec) {
    case 0:
      return records;
    case 1:
      return wholeOrStreamed(
        () => gunzipSync(records, { maxOutputLength: WHOLE_BYTES }),
        () => streamGzip(records),
      );
    case 2:
      return unpackSnappy(records, WHOLE_BYTES);
    case 3:
      return unpackLz4(records, WHOLE_BYTES);
    case 4:
      return wholeOrStreamed(
        () => unpackZstd(records, WHOLE_BYTES),
        () => streamZstd(records, CHUNK_BYTES),
      );
    default:
      throw new RangeError(`compression ${codec} is unknown`);
  }
};
