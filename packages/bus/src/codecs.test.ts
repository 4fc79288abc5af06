import kafkajs from "kafkajs";
import snappy from "snappy";
import { describe, expect, it } from "vitest";
import { registerCodecs } from "./codecs.ts";

const { CompressionCodecs, CompressionTypes } = kafkajs;

type Codec = {
  compress(encoder: { buffer: Buffer }): Promise<Buffer>;
  decompress(data: Buffer): Promise<Buffer>;
};

const codecOf = (type: number): Codec => {
  registerCodecs();
  return CompressionCodecs[type as keyof typeof CompressionCodecs]() as Codec;
};
const data = Buffer.from("to and fro ".repeat(100));

const XERIAL_HEADER = "82534e41505059000000000100000001";

it.each([
  ["gzip", CompressionTypes.GZIP, "1f8b"],
  ["zstd", CompressionTypes.ZSTD, "28b52ffd"],
  ["LZ4", CompressionTypes.LZ4, "04224d18"],
  ["Snappy", CompressionTypes.Snappy, XERIAL_HEADER],
] as const)("%s goes there and back in its own format", async (_name, type, magic) => {
  const codec = codecOf(type);
  const compressed = await codec.compress({ buffer: data });
  expect(compressed.toString("hex").slice(0, magic.length)).toBe(magic);
  expect(compressed.length).toBeLessThan(data.length / 2);
  expect(await codec.decompress(compressed)).toEqual(data);
});

it.each([
  ["gzip", CompressionTypes.GZIP],
  ["zstd", CompressionTypes.ZSTD],
  ["LZ4", CompressionTypes.LZ4],
  ["Snappy", CompressionTypes.Snappy],
] as const)("%s rejects bytes that are cut off, and throws nothing past the promise", async (_name, type) => {
  const codec = codecOf(type);
  const compressed = await codec.compress({ buffer: data });
  await expect(codec.decompress(compressed.subarray(0, -8))).rejects.toBeInstanceOf(Error);
});

describe("Snappy", () => {
  const block = (part: Buffer): Buffer[] => {
    const compressed = snappy.compressSync(part);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(compressed.length);
    return [length, compressed];
  };

  it("reads a stream of several blocks", async () => {
    const stream = Buffer.concat([
      Buffer.from(XERIAL_HEADER, "hex"),
      ...block(data.subarray(0, 500)),
      ...block(data.subarray(500)),
    ]);
    expect(await codecOf(CompressionTypes.Snappy).decompress(stream)).toEqual(data);
  });

  it("reads a block without a stream around it, as librdkafka writes it", async () => {
    expect(await codecOf(CompressionTypes.Snappy).decompress(snappy.compressSync(data))).toEqual(data);
  });
});
