import { crc32, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { BusMessage } from "../message.ts";
import { packBatch, packMarker, packRecords, type TestRecord } from "./batch.fixture.ts";
import { committedBatches } from "./committed-batches.ts";
import { readBatches } from "./record-batch.ts";
import { readSlices, type RecordSlice } from "./record-slices.ts";

const WHERE = { topic: "t", partition: 3 };
const GZIP = 1;

const slicesOf = async (
  recordSet: Buffer,
  {
    from = 0,
    size = 1_000,
    aborted = [] as [number, number][],
    isLasting = true,
    now = (): number => 0,
  } = {},
): Promise<RecordSlice[]> => {
  const batches = readBatches(recordSet);
  const committed = committedBatches(
    batches,
    aborted.map(([producer, firstOffset]) => ({ producerId: BigInt(producer), firstOffset })),
  );
  const fetched = batches.map((batch) => ({ batch, isCommitted: committed.has(batch) }));
  const slices: RecordSlice[] = [];
  const options = { where: WHERE, from, size: () => size, isLasting: () => Promise.resolve(isLasting), now };
  for await (const slice of readSlices(fetched, options)) slices.push(slice);
  return slices;
};
const messagesOf = (slices: readonly RecordSlice[]): BusMessage[] =>
  slices.flatMap(({ messages }) => messages);
const offsetsOf = (slices: readonly RecordSlice[]): number[] =>
  messagesOf(slices).map(({ offset }) => offset);

const counted = (count: number, value: Buffer | string = "v"): TestRecord[] =>
  Array.from({ length: count }, (_, offset) => ({ offset, value }));
const inTransaction = (first: number, producer: number): Buffer =>
  packBatch({ first, last: first, attributes: 0x10, producer, records: packRecords(counted(1)) });

it("carries key, value, headers and times", async () => {
  const records = packRecords([
    {
      offset: 0,
      key: "k",
      value: "v",
      time: 3,
      headers: [
        ["h", "a"],
        ["n", null],
        ["h", "b"],
      ],
    },
    { offset: 2, time: -4 },
  ]);
  const set = packBatch({ first: 7, last: 9, count: 2, firstTime: 1_700_000_000_000, maxTime: 5, records });
  const [slice, ...others] = await slicesOf(set);
  expect(others).toEqual([]);
  expect(slice).toEqual({
    nextOffset: 10,
    messages: [
      {
        ...WHERE,
        offset: 7,
        key: Buffer.from("k"),
        value: Buffer.from("v"),
        headers: { h: [Buffer.from("a"), Buffer.from("b")], n: null },
        timestamp: 1_700_000_000_003,
        hasBrokerTime: false,
        bytes: 20 + 3 * 100,
      },
      {
        ...WHERE,
        offset: 9,
        key: null,
        value: null,
        headers: {},
        timestamp: 1_699_999_999_996,
        hasBrokerTime: false,
        bytes: 7,
      },
    ],
  });
});

it("gives the broker's time to all records where the broker has set it", async () => {
  const records = packRecords([
    { offset: 0, time: 3 },
    { offset: 1, time: 9 },
  ]);
  const set = packBatch({ first: 0, last: 1, attributes: 8, firstTime: 10, maxTime: 99, records });
  const times = messagesOf(await slicesOf(set)).map(({ timestamp, hasBrokerTime }) => [
    timestamp,
    hasBrokerTime,
  ]);
  expect(times).toEqual([
    [99, true],
    [99, true],
  ]);
});

it("gives signs of life while it takes long, and the same messages", async () => {
  const records = gzipSync(packRecords(counted(3, Buffer.alloc(3_000_000))));
  const set = packBatch({ first: 0, last: 2, attributes: GZIP, records });
  let time = 0;
  const slices = await slicesOf(set, { now: () => (time += 60) });
  expect(slices.filter(({ messages }) => messages.length === 0).length).toBeGreaterThan(1);
  expect(offsetsOf(slices)).toEqual([0, 1, 2]);
});

it("begins inside a batch, leaves out what is cut off at the end, and passes compacted places", async () => {
  const whole = packBatch({ first: 0, last: 5, count: 4, records: packRecords(counted(4)) });
  const [slice] = await slicesOf(Buffer.concat([whole, whole.subarray(0, 70)]), { from: 2 });
  expect(slice?.messages.map(({ offset }) => offset)).toEqual([2, 3]);
  expect(slice?.nextOffset).toBe(6);
  expect(await slicesOf(packBatch({ first: 0, last: 5, count: 0, records: Buffer.alloc(0) }))).toEqual([
    { messages: [], nextOffset: 6 },
  ]);
});

it("reads 150,000 records of one batch", async () => {
  const records = packRecords(counted(150_000, ""));
  const set = packBatch({ first: 0, last: 149_999, attributes: GZIP, records: gzipSync(records) });
  const slices = await slicesOf(set, { size: 4_096 });
  expect(messagesOf(slices)).toHaveLength(150_000);
  expect(slices.at(-1)?.nextOffset).toBe(150_000);
});

it("cuts slices anywhere, whatever is compressed, and loses and repeats nothing", async () => {
  const lengths = fc.array(fc.nat(400_000), { minLength: 1, maxLength: 60 });
  const size = fc.integer({ min: 1, max: 50 });
  const tickMs = fc.constantFrom(0, 1, 20, 60);
  await fc.assert(
    fc.asyncProperty(lengths, fc.nat(70), size, tickMs, async (sizes, from, size, tickMs) => {
      const values = sizes.map((length, index) => Buffer.alloc(length, index));
      const records = packRecords(values.map((value, offset) => ({ offset, value })));
      const set = packBatch({
        first: 0,
        last: values.length - 1,
        attributes: GZIP,
        records: gzipSync(records, { level: 1 }),
      });
      let time = 0;
      const slices = await slicesOf(set, { from, size, now: () => (time += tickMs) });
      expect(messagesOf(slices).map(({ value }) => value?.length)).toEqual(sizes.slice(from));
      for (const message of messagesOf(slices)) {
        expect(values[message.offset]?.equals(message.value ?? Buffer.from("none"))).toBe(true);
      }
      let reached = from;
      for (const { messages, nextOffset } of slices.slice(0, -1)) {
        // An empty slice is a sign of life and goes no further.
        reached = (messages.at(-1)?.offset ?? reached - 1) + 1;
        expect(nextOffset).toBe(reached);
        expect(messages.length).toBeLessThanOrEqual(size);
      }
    }),
    { numRuns: 30 },
  );
});

it("leaves out two transactions that began before the fetch and abort in another order", async () => {
  const set = Buffer.concat([
    inTransaction(2, 11),
    inTransaction(3, 12),
    packMarker(4, 12, "abort"),
    inTransaction(5, 11),
    inTransaction(6, 12),
    packMarker(7, 11, "abort"),
    packMarker(8, 12, "commit"),
    inTransaction(9, 11),
    packMarker(10, 11, "commit"),
  ]);
  const aborted: [number, number][] = [
    [12, 1],
    [11, 0],
  ];
  const slices = await slicesOf(set, { aborted });
  expect(offsetsOf(slices)).toEqual([6, 9]);
  expect(slices.at(-1)?.nextOffset).toBe(11);
});

it("takes a message with the key of a marker for a message", async () => {
  const records = packRecords([{ offset: 0, key: Buffer.alloc(4), value: "v" }]);
  const set = Buffer.concat([
    packBatch({ first: 0, last: 0, attributes: 0x10, producer: 7, records }),
    inTransaction(1, 7),
    packMarker(2, 7, "abort"),
  ]);
  expect(offsetsOf(await slicesOf(set, { aborted: [[7, 0]] }))).toEqual([]);
});

const brokenMarker = (offset: number, producer: number, records: Buffer): Buffer =>
  packBatch({ first: offset, last: offset, attributes: 0x30, producer, records });

it.each([
  ["no record", Buffer.alloc(0)],
  ["a record that is cut off", packRecords([{ offset: 0, key: Buffer.alloc(4), value: "" }]).subarray(0, 3)],
  ["a key that is too short", packRecords([{ offset: 0, key: Buffer.alloc(1), value: "" }])],
  ["a key that says another length", Buffer.from([0x10, 0, 0, 0, 0x7e, 0, 0, 0, 0])],
])("passes a control batch of %s, which ends its transaction all the same", async (_name, records) => {
  const set = Buffer.concat([
    inTransaction(0, 7),
    brokenMarker(1, 7, records),
    inTransaction(2, 7),
    packMarker(3, 7, "commit"),
  ]);
  const slices = await slicesOf(set, { aborted: [[7, 0]] });
  expect(offsetsOf(slices)).toEqual([2]);
  expect(slices.at(-1)?.nextOffset).toBe(4);
});

it.each([
  [
    "bytes that cannot be unpacked",
    packBatch({ first: 4, last: 9, attributes: GZIP, records: Buffer.from("no") }),
  ],
  ["bytes that are no records", packBatch({ first: 4, last: 9, records: Buffer.from("no records") })],
  ["another compression", packBatch({ first: 4, last: 9, attributes: 6, records: packRecords(counted(6)) })],
  [
    "offsets that begin before the batch",
    packBatch({ first: 4, last: 9, records: packRecords([{ offset: -1 }]) }),
  ],
  [
    "fewer records than it says",
    packBatch({ first: 4, last: 9, count: 7, records: packRecords(counted(6)) }),
  ],
  ["no records where it says some", packBatch({ first: 4, last: 9, count: 1, records: Buffer.alloc(0) })],
])("names the range of %s, and goes on", async (_name, broken) => {
  const set = Buffer.concat([broken, packBatch({ first: 10, last: 10, records: packRecords(counted(1)) })]);
  const [unreadable, next] = messagesOf(await slicesOf(set));
  expect(unreadable).toMatchObject({ offset: 4, value: null, unreadable: { lastOffset: 9 } });
  expect(unreadable?.unreadable?.why).toMatch(/\w/);
  expect(next).toMatchObject({ offset: 10, value: Buffer.from("v") });
  const [later] = messagesOf(await slicesOf(set, { from: 6 }));
  expect(later).toMatchObject({ offset: 6, unreadable: { lastOffset: 9 } });
});

it("gives out what comes before the broken part of a batch", async () => {
  const records = gzipSync(packRecords([...counted(30, Buffer.alloc(400_000, "v"))])).subarray(0, -400);
  const set = packBatch({ first: 0, last: 29, attributes: GZIP, records });
  const messages = messagesOf(await slicesOf(set));
  const broken = messages.at(-1);
  expect(messages.slice(0, -1).map(({ offset }) => offset)).toEqual(
    Array.from({ length: messages.length - 1 }, (_, index) => index),
  );
  expect(broken).toMatchObject({ offset: messages.length - 1, unreadable: { lastOffset: 29 } });
});

it("reports the place of a message of an old format", async () => {
  const old = Buffer.alloc(40);
  old.writeBigInt64BE(5n, 0);
  old.writeInt32BE(28, 8);
  old.writeInt8(1, 16);
  old.writeUInt32BE(crc32(old.subarray(16)), 12);
  expect(messagesOf(await slicesOf(old))).toMatchObject([{ offset: 5, unreadable: { lastOffset: 5 } }]);
});

const MIB = 1024 * 1024;
const small: TestRecord["headers"] = Array.from({ length: 50_001 }, () => ["", ""] as const);

it.each([
  ["bytes, packed", 17 * MIB, [], gzipSync, GZIP],
  ["bytes, packed, in a batch of little else", 9 * MIB * 2, [], zstdCompressSync, 4],
  ["bytes, not packed", 17 * MIB, [], (bytes: Buffer) => bytes, 0],
  ["headers", 1, small, gzipSync, GZIP],
] as const)("sets a record of too many %s aside alone", async (_name, length, headers, pack, attributes) => {
  const value = Buffer.alloc(length);
  const records = packRecords([...counted(2), { offset: 2, value, headers }, { offset: 3, value: "w" }]);
  const messages = messagesOf(
    await slicesOf(packBatch({ first: 4, last: 7, attributes, records: pack(records) })),
  );
  expect(
    messages.map(({ offset, value: text, unreadable }) => [offset, text?.toString(), unreadable?.lastOffset]),
  ).toEqual([
    [4, "v", undefined],
    [5, "v", undefined],
    [6, undefined, 6],
    [7, "w", undefined],
  ]);
});

it("takes a record of 16 MiB, and one of 50,000 headers", async () => {
  const value = Buffer.alloc(16 * MIB - 100, "v");
  const records = packRecords([
    { offset: 0, value },
    { offset: 1, headers: small.slice(1) },
  ]);
  const set = packBatch({ first: 0, last: 1, attributes: GZIP, records: gzipSync(records) });
  const [large, many] = messagesOf(await slicesOf(set));
  expect(large?.value?.equals(value)).toBe(true);
  expect(many?.headers[""]).toHaveLength(50_000);
});

it("cuts a slice by headers, too", async () => {
  const headers = Array.from({ length: 5_000 }, () => ["n", ""] as const);
  const records = packRecords(Array.from({ length: 40 }, (_, offset) => ({ offset, headers })));
  const slices = await slicesOf(packBatch({ first: 0, last: 39, records }));
  expect(slices.length).toBeGreaterThan(3);
  expect(messagesOf(slices)).toHaveLength(40);
});

it.each([
  ["descend", [0, 1, 1, 3], 4, [0, 1, 2]],
  ["lie behind the batch", [0, 1, 9], 3, [0, 1, 2]],
  ["lie far behind the batch", [0, 2 ** 40], 2, [0, 1]],
  ["leave out what the header counts", [0, 2, 3], 4, [0, 1]],
  ["are more than the header counts", [0, 1, 2], 2, [0, 1, 2]],
  ["are too few at the end", [0, 1], 3, [0, 1, 2]],
])("names the rest of a batch whose offsets %s", async (_name, offsets, count, expected) => {
  const records = packRecords(offsets.map((offset) => ({ offset, value: "v" })));
  const next = packBatch({ first: 4, last: 4, records: packRecords(counted(1)) });
  const slices = await slicesOf(Buffer.concat([packBatch({ first: 0, last: 3, count, records }), next]));
  expect(offsetsOf(slices)).toEqual([...expected, 4]);
  expect(messagesOf(slices).at(-2)).toMatchObject({ value: null, unreadable: { lastOffset: 3 } });
  expect(slices.at(-1)?.nextOffset).toBe(5);
});

it("never goes on behind the end of a batch", async () => {
  const records = packRecords([...counted(2), { offset: 5 }]);
  const slices = await slicesOf(packBatch({ first: 0, last: 1, records }));
  expect(offsetsOf(slices)).toEqual([0, 1]);
  expect(slices.at(-1)?.nextOffset).toBe(2);
});

it("reads the records of a second frame", async () => {
  const frames = [counted(2), [{ offset: 2, value: "w" }]].map((part) => zstdCompressSync(packRecords(part)));
  const set = packBatch({ first: 0, last: 2, attributes: 4, records: Buffer.concat(frames) });
  expect(messagesOf(await slicesOf(set)).map(({ value }) => value?.toString())).toEqual(["v", "v", "w"]);
});

it.each([-1, 0, 13, 48])("refuses a batch with a length of %i by name", (length) => {
  const set = packBatch({ first: 0, last: 0, records: packRecords(counted(1)) });
  set.writeInt32BE(length, 8);
  expect(() => readBatches(set)).toThrow(expect.objectContaining({ code: "batch_length" }));
});
