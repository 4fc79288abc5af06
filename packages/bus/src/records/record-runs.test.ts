import { expect, it } from "vitest";
import { packBatch, packRecords } from "./batch.fixture.ts";
import { createRecordReader } from "./record.ts";
import { readBatches } from "./record-batch.ts";
import { runsOf } from "./record-runs.ts";

const MIB = 1024 * 1024;

it("passes a record that is too large wherever the stream is cut", async () => {
  const records = packRecords([
    { offset: 0, value: "v" },
    { offset: 1, value: Buffer.alloc(16 * MIB) },
    { offset: 2, value: "w" },
  ]);
  const [batch] = readBatches(packBatch({ first: 0, last: 2, records }));
  if (batch === undefined) throw new Error("no batch");
  for (let at = 1; at < 60; at += 1) {
    const reader = createRecordReader({ topic: "t", partition: 0 }, batch);
    const seen: (number | string)[] = [];
    const places = [0, at, at + 5, 5 * MIB, 10 * MIB, 15 * MIB, records.length - at, records.length];
    const chunks = places.slice(1).map((end, index) => records.subarray(places[index], end));
    for await (const run of runsOf(chunks)) {
      expect(run.length).toBeLessThan(100);
      for (const { offset, unreadable } of reader.read(run)) {
        seen.push(unreadable === undefined ? offset : unreadable.why);
      }
    }
    reader.end();
    expect(seen).toEqual([0, expect.stringContaining("too large"), 2]);
  }
});

it("says that a record is cut off, one that is too large as well", async () => {
  const records = packRecords([{ offset: 0, value: Buffer.alloc(17 * MIB) }]);
  const read = async (): Promise<void> => {
    for await (const run of runsOf([records.subarray(0, MIB), records.subarray(MIB, -1)])) {
      expect(run.length).toBeLessThan(100);
    }
  };
  await expect(read()).rejects.toThrow("cut off");
});
