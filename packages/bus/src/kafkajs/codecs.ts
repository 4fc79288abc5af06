import { gzipSync, zstdCompressSync } from "node:zlib";
import kafkajs from "kafkajs";

const { CompressionCodecs, CompressionTypes } = kafkajs;

/** Synchronous: for a few MB a trip to the thread pool takes longer. */
const compressBy = (compress: (data: Buffer) => Buffer) => () => ({
  compress: ({ buffer }: { buffer: Buffer }) => Promise.resolve().then(() => compress(buffer)),
});

export const registerCodecs = (): void => {
  CompressionCodecs[CompressionTypes.GZIP] = compressBy(gzipSync);
  CompressionCodecs[CompressionTypes.ZSTD] = compressBy(zstdCompressSync);
};
