import { gzipSync, zstdCompressSync } from "node:zlib";
import lz4 from "lz4-napi";
import snappy from "snappy";
import { describe, expect, it } from "vitest";
import { XERIAL_HEADER } from "./snappy.ts";
import { unpack, WHOLE_BYTES } from "./unpack.ts";

const data = Buffer.from("to and fro ".repeat(100));
/** Too large for one go. */
const large = Buffer.from("to and fro ".repeat(1_200_000));

const xerialOf = (whole: Buffer, blockBytes: number): Buffer => {
  const parts: Buffer[] = [XERIAL_HEADER];
  for (let at = 0; at < whole.length; at += blockBytes) {
    const block = snappy.compressSync(whole.subarray(at, at + blockBytes));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(block.length);
    parts.push(length, block);
  }
  return Buffer.concat(parts);
};

/** With linked blocks of 64 KiB, LZ4's default. */
const linkedLz4Of = (whole: Buffer): Buffer => {
  const parts: Buffer[] = [Buffer.from("04224d18404000", "hex")];
  let history: Buffer = Buffer.alloc(0);
  for (let at = 0; at < whole.length; at += 65_536) {
    const plain = whole.subarray(at, at + 65_536);
    // The library puts the length in front of a block.
    const block = lz4.compressSync(plain, history).subarray(4);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(block.length);
    parts.push(length, block);
    history = plain;
  }
  return Buffer.concat([...parts, Buffer.alloc(4)]);
};

const packers: [string, number, (whole: Buffer) => Buffer][] = [
  ["none", 0, (whole) => whole],
  ["gzip", 1, (whole) => gzipSync(whole)],
  ["Snappy", 2, (whole) => xerialOf(whole, 32_768)],
  ["Snappy without a stream around it", 2, (whole) => snappy.compressSync(whole)],
  ["LZ4", 3, (whole) => lz4.compressFrameSync(whole)],
  [
    "LZ4 with checksums",
    3,
    (whole) => lz4.compressFrameSync(whole, { blockChecksums: true, contentChecksum: true }),
  ],
  ["zstd", 4, (whole) => zstdCompressSync(whole)],
];

const collect = async (codec: number, records: Buffer) => {
  const unpacked = unpack({ codec, records });
  const parts: Buffer[] = [];
  for await (const part of Buffer.isBuffer(unpacked) ? [unpacked] : unpacked) parts.push(part);
  return { whole: Buffer.concat(parts), largest: Math.max(0, ...parts.map(({ length }) => length)) };
};

describe.each(packers)("%s", (_name, codec, pack) => {
  it("is unpacked as a whole when it is small", () => {
    expect(unpack({ codec, records: pack(data) })).toEqual(data);
  });

  it("is unpacked in parts when it is large", async () => {
    const { whole, largest } = await collect(codec, pack(large));
    expect(whole.equals(large)).toBe(true);
    // A plain block of Snappy has no parts, and uncompressed bytes are in memory already.
    if (codec !== 0 && _name !== "Snappy without a stream around it") {
      expect(largest).toBeLessThanOrEqual(WHOLE_BYTES / 2);
    }
  });
});

it.each(packers.slice(1))("%s rejects bytes that are cut off", async (_name, codec, pack) => {
  for (const whole of [data, large]) {
    await expect(collect(codec, pack(whole).subarray(0, -12))).rejects.toBeInstanceOf(Error);
  }
});

it("reads blocks of LZ4 that refer to the ones before", async () => {
  const noise = Buffer.from(Array.from({ length: 65_536 }, (_, index) => (index * 7919) % 251));
  const whole = Buffer.concat(Array.from({ length: 140 }, () => noise));
  const packed = linkedLz4Of(whole);
  expect(packed.length).toBeLessThan(whole.length / 50);
  expect((await collect(3, packed)).whole.equals(whole)).toBe(true);
});

it.each([
  ["gzip", 1, gzipSync],
  ["zstd", 4, zstdCompressSync],
] as const)("unpacks all frames of %s, at once and in parts", async (_name, codec, pack) => {
  for (const parts of [
    [data, data, data],
    [data, large, data],
  ]) {
    const packed = Buffer.concat(parts.map((part) => pack(part)));
    expect((await collect(codec, packed)).whole.equals(Buffer.concat(parts))).toBe(true);
  }
});

it("refuses zstd data of very many frames, and what is behind a frame and none", async () => {
  const frame = zstdCompressSync(data);
  await expect(collect(4, Buffer.concat(Array.from({ length: 65 }, () => frame)))).rejects.toThrow(
    "too many",
  );
  await expect(collect(4, Buffer.concat([frame, data]))).rejects.toBeInstanceOf(Error);
});

it("leaves out what lies behind a frame of LZ4", async () => {
  const frame = lz4.compressFrameSync(data, { contentChecksum: true });
  const packed = Buffer.concat([frame, lz4.compressFrameSync(large)]);
  expect((await collect(3, packed)).whole.equals(data)).toBe(true);
});

it("refuses a block of Snappy that says to be huge", async () => {
  const huge = Buffer.from([0xff, 0xff, 0xff, 0xff, 0x07, 0, 0, 0]);
  await expect(collect(2, huge)).rejects.toThrow("too large");
});

it("refuses a compression that it does not know", async () => {
  await expect(collect(5, data)).rejects.toThrow("compression 5");
});
