import { createLogger } from "@conversation-export/runtime";
import type { EachBatchPayload } from "kafkajs";
import lz4 from "lz4-napi";
import { expect, it } from "vitest";
import { packBatch, packMarker, packRecords } from "../records/batch.fixture.ts";
import { readBatches } from "../records/record-batch.ts";
import { createBatchReader } from "./batch-reader.ts";
import type { MessageSlice, Taken } from "./contract.ts";
import { createMembership } from "./membership.ts";
import { createPauses } from "./pauses.ts";

const WHERE = { topic: "t", partition: 0 };

const start = (
  position: number,
  onSlice: (slice: MessageSlice) => Taken = () => "continue",
  isRecent = (): boolean => true,
) => {
  const membership = Object.assign(createMembership(), { phase: "joined", epoch: 1 } as const);
  const given: MessageSlice[] = [];
  const resolved: string[] = [];
  const heartbeats: number[] = [];
  const pauses = createPauses({ membership, pause: () => {}, resume: () => {} });
  const reader = createBatchReader({
    membership,
    gate: { committedOffset: () => String(position) },
    topics: { isRecent: () => isRecent() },
    pauses,
    commits: { sendBy: () => {} },
    isLasting: () => Promise.resolve(true),
    log: createLogger({ service: "test", level: "silent" }),
    onMessages: (slice) => {
      given.push(slice);
      return onSlice(slice);
    },
  });
  const read = (fetchedOffset: number, recordSet: Buffer): Promise<void> =>
    pass(
      fetchedOffset,
      readBatches(recordSet).map((batch) => ({
        offset: String(batch.lastOffset),
        batch,
        isCommitted: !batch.isControl,
      })),
    );
  const pass = (fetchedOffset: number, messages: readonly object[]): Promise<void> =>
    reader.eachBatch({
      batch: { ...WHERE, highWatermark: "20", fetchedOffset: String(fetchedOffset), messages },
      resolveOffset: (offset: string) => void resolved.push(offset),
      uncommittedOffsets: () => ({ topics: [] }),
      heartbeat: () => {
        heartbeats.push(performance.now());
        return Promise.resolve();
      },
      commitOffsetsIfNecessary: () => Promise.resolve(),
    } as unknown as EachBatchPayload);
  return { membership, pauses, given, resolved, heartbeats, read, pass };
};

const CONTROL = packMarker(12, 7, "commit");

it("hands over the end of control records alone", async () => {
  const { read, given, resolved } = start(12);
  await read(12, CONTROL);
  expect(given).toMatchObject([{ ...WHERE, epoch: 1, messages: [], nextOffset: 13, highWatermark: 20 }]);
  expect(resolved).toEqual(["12"]);
});

it("hands over nothing that was fetched before the last join, though the position is the same", async () => {
  const { read, given, resolved } = start(12, undefined, () => false);
  await read(12, CONTROL);
  expect([given, resolved]).toEqual([[], []]);
});

it("does not move past what a rejoin will deliver again, for control records alone either", async () => {
  const { read, given, resolved } = start(5);
  await read(12, CONTROL);
  expect([given, resolved]).toEqual([[], []]);
});

it("pauses a partition that the broker cannot read, and moves past nothing", async () => {
  const { pass, given, resolved, pauses } = start(5, undefined, () => false);
  await pass(5, [{ offset: "9", error: new Error("a broken disk") }]);
  expect([given, resolved, pauses.isPaused(WHERE)]).toEqual([[], [], true]);
});

it("resolves behind the part of a batch that cannot be read, taken or not", async () => {
  const broken = packBatch({ first: 0, last: 9, attributes: 1, records: Buffer.from("no gzip") });
  const set = Buffer.concat([
    broken,
    packBatch({ first: 10, last: 10, records: packRecords([{ offset: 0 }]) }),
  ]);
  const { read, resolved, pauses } = start(0, () => ({ processed: 1, pause: true }));
  await read(0, set);
  expect(resolved).toEqual(["9"]);
  expect(pauses.isPaused(WHERE)).toBe(true);
});

it("gives nothing of what was unpacked while a rejoin came", async () => {
  const { read, given, membership } = start(0);
  const records = packRecords([{ offset: 0, value: "v" }]);
  const reading = read(0, packBatch({ first: 0, last: 0, records }));
  Object.assign(membership, { phase: "joined", epoch: 2 });
  await reading;
  expect(given).toEqual([]);
});

it("beats all the time while it passes what it has taken of a large batch", async () => {
  const value = Buffer.alloc(1024 * 1024);
  const count = 200;
  const records = packRecords(Array.from({ length: count }, (_, offset) => ({ offset, value })));
  const set = packBatch({
    first: 0,
    last: count - 1,
    attributes: 3,
    records: lz4.compressFrameSync(records),
  });
  const { read, given, resolved, heartbeats } = start(count - 1);
  const startedAt = performance.now();
  await read(count - 1, set);
  const beats = [startedAt, ...heartbeats, performance.now()];
  const longest = Math.max(...beats.slice(1).map((beat, index) => beat - (beats[index] ?? 0)));
  expect(longest).toBeLessThan((performance.now() - startedAt) / 2);
  expect(given.map(({ messages, nextOffset }) => [messages.length, nextOffset])).toEqual([[1, count]]);
  expect(resolved).toEqual([String(count - 1)]);
});
