import { randomBytes } from "node:crypto";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { unpack } from "./unpack.ts";

const PACK = { "a.gz": gzipSync, "a.zst": zstdCompressSync } as const;
const name = fc.constantFrom("a.gz", "a.zst");

async function* cutInto(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  const places = [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  let from = 0;
  for (const to of places) {
    if (to > from) yield bytes.subarray(from, to);
    from = to;
  }
}

const readAll = async (source: AsyncIterable<Buffer>): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
};

it("gives every byte of several packed files behind each other, however they come", async () => {
  const noise = randomBytes(400_000);
  const size = fc.oneof(fc.constant(0), fc.nat({ max: 50 }), fc.nat({ max: noise.length }));
  await fc.assert(
    fc.asyncProperty(
      name,
      fc.array(size, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      fc.boolean(),
      async (file, sizes, cuts, atFrames) => {
        const plain = sizes.map((end) => noise.subarray(0, end));
        const packed = plain.map((one) => PACK[file](one));
        let end = 0;
        const ends = packed.map((one) => (end += one.length));
        const got = await readAll(unpack(file, cutInto(Buffer.concat(packed), atFrames ? ends : cuts)));
        expect(got.equals(Buffer.concat(plain))).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

it("gives other files as they are, and nothing of an empty one", async () => {
  expect(String(await readAll(unpack("a.ndjson", cutInto(Buffer.from("text"), [2]))))).toBe("text");
  expect(await readAll(unpack("a.gz", cutInto(Buffer.alloc(0), [])))).toHaveLength(0);
});

it.each([
  "a.gz",
  "a.zst",
] as const)("fails for %s that is cut off or has something else behind it", async (file) => {
  const packed = PACK[file](randomBytes(100_000));
  const broken = { code: "source_unreadable" };
  const cutOff = packed.subarray(0, packed.length - 9);
  await expect(readAll(unpack(file, cutInto(cutOff, [50_000])))).rejects.toMatchObject(broken);
  const more = Buffer.concat([packed, Buffer.from("something else")]);
  await expect(readAll(unpack(file, cutInto(more, [packed.length])))).rejects.toMatchObject(broken);
});

it.each([
  "a.gz",
  "a.zst",
  "a.ndjson",
])("passes on the error of the source of %s, and closes it when left early", async (file) => {
  const packed =
    file === "a.gz" ? gzipSync(randomBytes(1_000_000)) : zstdCompressSync(randomBytes(1_000_000));
  let closed = 0;
  async function* source(fails: boolean): AsyncGenerator<Buffer> {
    try {
      yield* cutInto(packed.subarray(0, 800_000), [300_000, 600_000]);
      if (fails) throw new Error("the disk is gone");
      yield packed.subarray(800_000);
    } finally {
      closed += 1;
    }
  }
  await expect(readAll(unpack(file, source(true)))).rejects.toThrow("the disk is gone");
  for await (const _ of unpack(file, source(false))) break;
  expect(closed).toBe(2);
});
