import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createView } from "@conversation-export/domain";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createLegacyRecords } from "./legacy-records.ts";

const view = createView(["_id", "sender"]);

const read = async (chunks: readonly Buffer[]): Promise<string> =>
  (await buffer(Readable.from(chunks).pipe(createLegacyRecords(view)))).toString();

/** May cut inside characters and records; chunks may be empty. */
const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const sorted = [
    0,
    ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
};

it("gives the view of each record, however the bytes are cut", async () => {
  const record = fc.record({
    _id: fc.string({ unit: "grapheme" }),
    body: fc.string({ unit: "binary" }),
    sender: fc.json(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      fc.constantFrom("", "\n"),
      async (records, places, end) => {
        const bytes = Buffer.from(
          records.map((one) => JSON.stringify(one)).join("\n") + (records.length > 0 ? end : ""),
        );
        const expected = records.map(({ _id, sender }) => JSON.stringify({ _id, sender })).join(",");
        expect(await read(cut(bytes, places))).toBe(expected);
      },
    ),
  );
});

it("gives a record of a megabyte that comes in many chunks", async () => {
  const large = JSON.stringify({ _id: "large", sender: "é\n".repeat(350_000), tail: 1 });
  const bytes = Buffer.from(`{"_id":"first"}\n${large}\n{"_id":"last"}`);
  const places = Array.from({ length: 100 }, (_, index) => index * 10_000 + 7);
  const text = await read(cut(bytes, places));
  expect(text).toBe(`{"_id":"first"},${large.slice(0, -10)}},{"_id":"last"}`);
});

it("holds no more than a chunk and a record while nobody reads", async () => {
  const line = Buffer.from(`${JSON.stringify({ _id: "x".repeat(1000) })}\n`);
  const chunk = Buffer.concat(Array.from({ length: 64 }, () => line));
  let given = 0;
  const source = new Readable({
    read() {
      given += 1;
      this.push(given > 1000 ? null : chunk);
    },
  });
  const records = createLegacyRecords(view);
  const done = pipeline(source, records);
  await new Promise((resolve) => records.once("readable", resolve));
  await new Promise(setImmediate);
  expect(given).toBeLessThan(10);
  expect(records.readableLength).toBeLessThan(4 * chunk.length);
  records.destroy();
  await expect(done).rejects.toThrow("Premature close");
  expect(source.destroyed).toBe(true);
});
