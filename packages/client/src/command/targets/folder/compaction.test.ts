import fc from "fast-check";
import { expect, it } from "vitest";
import { isDeletion } from "../../line.ts";
import { compactSegments } from "./compaction.ts";
import { removeDeleted } from "./removal.ts";
import type { Segment, SegmentWriter } from "../target.ts";

type Change = { readonly id: number; readonly version: number; readonly deleted: boolean };

const lineOf = ({ id, version, deleted }: Change): string =>
  deleted
    ? `{"_id":"${id}","deleted":true,"deleted_at":"${version}"}`
    : `{"_id":"${id}","version":${version}}`;

const createStore = () => {
  const files = new Map<string, string[]>();
  const begin = (): Promise<SegmentWriter> => {
    const file = `f${files.size}`;
    const lines: string[] = [];
    files.set(file, lines);
    let bytes = 0;
    return Promise.resolve({
      bytes: () => bytes,
      write: (block: Uint8Array) => {
        bytes += block.byteLength;
        lines.push(...Buffer.from(block).toString().trimEnd().split("\n"));
        return Promise.resolve();
      },
      finish: () =>
        Promise.resolve({ file, bytes, lines: lines.length, deletions: lines.filter(isDeletion).length }),
      abort: () => Promise.resolve(),
    });
  };
  const read = async function* ({ file }: Segment): AsyncGenerator<string, void> {
    yield* files.get(file) ?? [];
  };
  const put = async (changes: readonly Change[]): Promise<Segment> => {
    const writer = await begin();
    await writer.write(Buffer.from(changes.map((change) => `${lineOf(change)}\n`).join("")), changes.length);
    return writer.finish();
  };
  return {
    begin,
    read,
    put,
    linesOf: (segments: readonly Segment[]) => segments.flatMap(({ file }) => files.get(file) ?? []),
  };
};

const changes = fc.array(fc.record({ id: fc.nat(12), version: fc.nat(1_000), deleted: fc.boolean() }), {
  minLength: 1,
  maxLength: 8,
});

it("leaves of each record its last line and of deleted ones none, however few ids memory holds", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(changes, { maxLength: 6 }),
      fc.nat(6),
      fc.constantFrom(1, 40, 100_000),
      async (all, maxIds, segmentBytes) => {
        const store = createStore();
        const segments: Segment[] = [];
        for (const one of all) segments.push(await store.put(one));
        const compacted = await compactSegments(segments, { ...store, maxIds, segmentBytes });
        const last = new Map(all.flat().map((change) => [change.id, change]));
        const wanted = [...last.values()].filter(({ deleted }) => !deleted).map(lineOf);
        expect(store.linesOf(compacted).toSorted()).toEqual(wanted.toSorted());
        expect(compacted.reduce((sum, { lines }) => sum + lines, 0)).toBe(wanted.length);
      },
    ),
  );
});

it("keeps files that lose nothing", async () => {
  const store = createStore();
  const record = (id: number): Change => ({ id, version: 1, deleted: false });
  const segments = [await store.put([record(1), record(2)]), await store.put([record(3), record(4)])];
  const last = await store.put([{ ...record(3), deleted: true }]);
  const compacted = await compactSegments([...segments, last], { ...store, segmentBytes: 8 });
  expect(compacted[0]).toBe(segments[0]);
  expect(store.linesOf(compacted)).toEqual([1, 2, 4].map((id) => lineOf(record(id))));
});

it("removes deleted records from the files that have them, and keeps all else in its order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(changes, { maxLength: 6 }), async (all) => {
      const store = createStore();
      const segments: Segment[] = [];
      for (const one of all) segments.push(await store.put(one));
      let reads = 0;
      const read = (segment: Segment) => {
        reads += 1;
        return store.read(segment);
      };
      const left = await removeDeleted(segments, { read, beginInstead: store.begin });
      const order = all.flat();
      const isGone = ({ id }: Change, at: number): boolean =>
        order.some((other, later) => later >= at && other.id === id && other.deleted);
      expect(store.linesOf(left)).toEqual(order.filter((one, at) => !isGone(one, at)).map(lineOf));
      expect(left.every(({ deletions }) => deletions === 0)).toBe(true);
      expect(reads).toBeLessThanOrEqual(3 * segments.length);
    }),
  );
});
