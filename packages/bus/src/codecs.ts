import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import kafkajs from "kafkajs";
import lz4 from "lz4-napi";
import snappy from "snappy";

const { CompressionCodecs, CompressionTypes } = kafkajs;

type Encoder = { buffer: Buffer };

/** Record batches are at most a few MB: the synchronous calls are faster than a trip to the thread pool. */
const codec = (compress: (data: Buffer) => Buffer, decompress: (data: Buffer) => Buffer) => () => ({
  compress: (encoder: Encoder) => Promise.resolve().then(() => compress(encoder.buffer)),
  decompress: (data: Buffer) => Promise.resolve().then(() => decompress(data)),
});

// The stream of Java's xerial library, which Kafka's own clients write: a header of magic, version and oldest
// compatible version, then blocks of a length (4 bytes, big-endian) and that many bytes of Snappy.
const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const XERIAL_HEADER = Buffer.concat([XERIAL_MAGIC, Buffer.from([0, 0, 0, 1, 0, 0, 0, 1])]);

const uncompress = (block: Buffer): Buffer => snappy.uncompressSync(block, { asBuffer: true }) as Buffer;

const snappyCompress = (data: Buffer): Buffer => {
  const block = snappy.compressSync(data);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(block.length);
  return Buffer.concat([XERIAL_HEADER, length, block]);
};

/** Reads the xerial stream, and the plain block that librdkafka and others write. */
const snappyDecompress = (data: Buffer): Buffer => {
  if (!data.subarray(0, XERIAL_MAGIC.length).equals(XERIAL_MAGIC)) return uncompress(data);
  const blocks: Buffer[] = [];
  for (let at = XERIAL_HEADER.length; at < data.length; ) {
    const start = at + 4;
    at = start + data.readUInt32BE(at);
    if (at > data.length) throw new RangeError("a Snappy block ends behind its batch");
    blocks.push(uncompress(data.subarray(start, at)));
  }
  return Buffer.concat(blocks);
};

/** A batch that unpacks to more is an attack or a fault: the process ends and says so, instead of running out of memory. */
const MAX_BATCH_BYTES = 512 * 1024 * 1024;

/** Teaches kafkajs every compression that Kafka has, so that no producer can end a consumer with one of them. */
export const registerCodecs = (): void => {
  CompressionCodecs[CompressionTypes.GZIP] = codec(gzipSync, (data) =>
    gunzipSync(data, { maxOutputLength: MAX_BATCH_BYTES }),
  );
  CompressionCodecs[CompressionTypes.ZSTD] = codec(zstdCompressSync, (data) =>
    zstdDecompressSync(data, { maxOutputLength: MAX_BATCH_BYTES }),
  );
  CompressionCodecs[CompressionTypes.Snappy] = codec(snappyCompress, snappyDecompress);
  CompressionCodecs[CompressionTypes.LZ4] = codec(
    (data) => lz4.compressFrameSync(data),
    (data) => lz4.decompressFrameSync(data),
  );
};
