import fc from "fast-check";
import { expect, it } from "vitest";
import type { BusMessage } from "../message.ts";
import { packBatch, packMarker, packRecords } from "./batch.fixture.ts";
import { committedBatches } from "./committed-batches.ts";
import { readBatches } from "./record-batch.ts";
import { readSlices } from "./record-slices.ts";

const WHERE = { topic: "t", partition: 3 };
const END = 12;

/** Four messages each. */
const batchAt = (first: number, more: { attributes?: number; producer?: number } = {}): Buffer =>
  packBatch({
    ...more,
    first,
    last: first + 3,
    records: packRecords([0, 1, 2, 3].map((offset) => ({ offset, value: `v${first + offset}` }))),
  });
const flipped = (whole: Buffer, at: number, bits = 0xff): Buffer => {
  const damaged = Buffer.from(whole);
  damaged.writeUInt8(damaged.readUInt8(at) ^ bits, at);
  return damaged;
};
const offsetsOf = (messages: readonly BusMessage[]): (number | string)[] =>
  messages.map(({ offset, unreadable }) => (unreadable ? `${offset}-${unreadable.lastOffset}` : offset));

const fetch = async (
  recordSet: Buffer,
  { from = 0, isLasting = true, aborted = [] as { producerId: bigint; firstOffset: number }[] } = {},
) => {
  const batches = readBatches(recordSet, END);
  const committed = committedBatches(batches, aborted);
  const messages: BusMessage[] = [];
  let next = from;
  const asked: number[] = [];
  for await (const slice of readSlices(
    batches.map((batch) => ({ batch, isCommitted: committed.has(batch) })),
    {
      where: WHERE,
      from,
      size: () => 3,
      isLasting: (_where, offset) => {
        asked.push(offset);
        return Promise.resolve(isLasting);
      },
    },
  )) {
    messages.push(...slice.messages);
    next = slice.nextOffset;
  }
  return { messages, next, asked };
};

/** As a consumer reads a partition whose bytes stay as they are. */
const readAll = async (recordSet: Buffer): Promise<(number | string)[]> => {
  const all: BusMessage[] = [];
  for (let from = 0; from < END; ) {
    const { messages, next } = await fetch(recordSet, { from });
    expect(next).toBeGreaterThan(from);
    all.push(...messages);
    from = next;
  }
  return offsetsOf(all);
};

const three = [0, 4, 8].map((first) => batchAt(first));
const length = batchAt(4).length;

it("finds any damaged byte behind the length, names the batch and reads the others", async () => {
  const place = fc.integer({ min: 16, max: length - 1 });
  await fc.assert(
    fc.asyncProperty(fc.nat(2), place, fc.integer({ min: 1, max: 255 }), async (index, at, bits) => {
      const set = Buffer.concat(
        three.map((batch, one) => (one === index ? flipped(batch, at, bits) : batch)),
      );
      const first = 4 * index;
      const read = await readAll(set);
      const good = Array.from({ length: END }, (_, offset) => offset).filter(
        (offset) => offset < first || offset > first + 3,
      );
      expect(read.filter((entry) => typeof entry === "number")).toEqual(good);
      // Behind the last batch only its own header says how far it goes.
      if (index < 2) expect(read).toContain(`${first}-${first + 3}`);
      else expect(read.slice(8).join()).toMatch(/^8-\d+|^(8-8),/);
    }),
  );
});

it("gives nothing of a damaged batch, and nothing behind it, until it is known to stay so", async () => {
  const set = Buffer.concat([batchAt(0), flipped(batchAt(4), length - 2), batchAt(8)]);
  const { messages, next, asked } = await fetch(set, { isLasting: false });
  expect([offsetsOf(messages), next, asked]).toEqual([[0, 1, 2, 3], 4, [4]]);
  const again = await fetch(set.subarray(length), { from: 4, isLasting: false });
  expect([again.messages, again.next, again.asked]).toEqual([[], 4, [4]]);
});

it("reports the checksum, and no time that may be wrong", async () => {
  const [message] = (await fetch(flipped(batchAt(0), length - 1))).messages;
  expect(message).toMatchObject({
    offset: 0,
    key: null,
    value: null,
    timestamp: -1,
    unreadable: { lastOffset: 3, why: "the checksum is wrong" },
  });
});

it("never takes a damaged header for something behind the end of the partition", async () => {
  const [message, ...others] = (await fetch(flipped(batchAt(8), 24), { from: 9 })).messages;
  expect(others).toEqual([]);
  expect(message).toMatchObject({ offset: 9, unreadable: { lastOffset: END - 1 } });
});

it("goes on behind a damaged batch that seems to reach over the position", async () => {
  const set = Buffer.concat([flipped(batchAt(0), 24), batchAt(4)]);
  const { messages, asked } = await fetch(set, { from: 5 });
  expect([offsetsOf(messages), asked]).toEqual([[5, 6, 7], []]);
});

it("does not pass a damaged batch that seems to lie before the position", async () => {
  const { messages, asked } = await fetch(flipped(batchAt(0), 26, 3), { from: 2 });
  expect([offsetsOf(messages), asked]).toEqual([["2-2"], [2]]);
});

it("reads nothing behind a damaged batch, which may have ended a transaction", async () => {
  const marker = packMarker(4, 7, "abort");
  const set = Buffer.concat([
    batchAt(0, { attributes: 0x10, producer: 7 }),
    flipped(marker, marker.length - 1),
    packBatch({ first: 5, last: 5, attributes: 0x10, producer: 7, records: packRecords([{ offset: 0 }]) }),
    packMarker(6, 7, "commit"),
  ]);
  const { messages, next } = await fetch(set, { aborted: [{ producerId: 7n, firstOffset: 0 }] });
  expect([offsetsOf(messages), next]).toEqual([["4-4"], 5]);
});

it("reads what comes before a length that is too short for a header", () => {
  const short = batchAt(4);
  short.writeInt32BE(5, 8);
  const set = Buffer.concat([batchAt(0), short, batchAt(8)]);
  expect(readBatches(set).map(({ firstOffset }) => firstOffset)).toEqual([0]);
  expect(() => readBatches(set.subarray(length))).toThrow(expect.objectContaining({ code: "batch_length" }));
});

it("refuses a response whose first batch is cut off, so that nobody waits for it in silence", () => {
  for (const bytes of [3, 16, 40, length - 1]) {
    expect(() => readBatches(batchAt(0).subarray(0, bytes))).toThrow(
      expect.objectContaining({ code: "batch_length" }),
    );
  }
});
