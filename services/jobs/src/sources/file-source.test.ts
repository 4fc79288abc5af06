import { appendFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { busPositionOf } from "@conversation-export/domain";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { SourceBatch } from "./event-source.ts";
import { createFileSource, groupFiles } from "./file-source.ts";
import { createFolderStore } from "./folder-store.ts";

let folder: string;
const signal = new AbortController().signal;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "file-source-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const line = (id: number, pad = 0): string =>
  `${JSON.stringify({ type: "message.exported", id: String(id), pad: "x".repeat(pad) })}\n`;
const lines = (from: number, to: number, pad = 0): string =>
  Array.from({ length: to - from }, (_, index) => line(from + index, pad)).join("");

const sourceOf = (location = folder) =>
  createFileSource({ location, store: createFolderStore(), now: () => 9 });

const readAll = async (location = folder): Promise<{ batches: SourceBatch[]; failure: unknown }> => {
  const source = sourceOf(location);
  const batches: SourceBatch[] = [];
  try {
    for (const part of await source.parts(null, signal)) {
      for await (const batch of source.read(part, signal)) batches.push(batch);
    }
  } catch (failure) {
    return { batches, failure };
  }
  return { batches, failure: undefined };
};
const idsOf = (batches: readonly SourceBatch[]): number[] =>
  batches.flatMap(({ events }) =>
    events.map(({ message }) => Number((JSON.parse(String(message.value)) as { id: string }).id)),
  );
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);

it("reads plain, gzip and zstd files of a folder and its folders, several members and frames of one file too", async () => {
  await mkdir(join(folder, "b"));
  await writeFile(join(folder, "a.ndjson"), lines(0, 10));
  await writeFile(
    join(folder, "b", "b.json.gz"),
    Buffer.concat([gzipSync(lines(10, 15)), gzipSync(lines(15, 20))]),
  );
  await writeFile(
    join(folder, "c.jsonl.zst"),
    Buffer.concat([zstdCompressSync(lines(20, 25)), zstdCompressSync(lines(25, 30))]),
  );
  await writeFile(join(folder, "empty.ndjson.gz"), "");
  await writeFile(join(folder, ".hidden.ndjson"), line(100));
  await writeFile(join(folder, "notes.txt"), line(101));
  await writeFile(join(folder, "kept-elsewhere.txt"), line(30));
  await symlink(join(folder, "kept-elsewhere.txt"), join(folder, "d.ndjson"));
  const { batches, failure } = await readAll();
  expect(failure).toBeUndefined();
  expect(idsOf(batches)).toEqual(range(0, 31));
  const topics = new Set(batches.flatMap(({ events }) => events.map(({ message }) => message.topic)));
  expect(topics.size).toBe(4);
});

it("numbers lines without a position, so that of two with one time the later wins", async () => {
  await writeFile(join(folder, "a.ndjson"), `${line(1)}\n${line(2)}${line(3)}`);
  const { batches } = await readAll();
  const places = batches.flatMap(({ events }) => events.map(({ message }) => busPositionOf(message)));
  expect(places.map(({ partition }) => partition)).toEqual([0, 0, 0]);
  const offsets = places.map(({ offset }) => offset);
  expect(offsets).toEqual(offsets.toSorted((one, other) => one - other));
  expect(new Set(offsets).size).toBe(3);
});

it("reads a file that is named whatever it is called", async () => {
  await writeFile(join(folder, "export.txt"), lines(0, 3));
  expect(idsOf((await readAll(join(folder, "export.txt"))).batches)).toEqual([0, 1, 2]);
});

it("keeps batches small, whatever the file is", async () => {
  await writeFile(join(folder, "many.ndjson.gz"), gzipSync(lines(0, 12_000)));
  const many = (await readAll()).batches;
  expect(idsOf(many)).toEqual(range(0, 12_000));
  expect(Math.max(...many.map(({ events }) => events.length))).toBe(5_000);
  await writeFile(join(folder, "many.ndjson.gz"), gzipSync(lines(0, 30, 1_000_000)));
  const large = (await readAll()).batches;
  expect(idsOf(large)).toEqual(range(0, 30));
  expect(Math.max(...large.map(({ events }) => events.length))).toBeLessThan(10);
});

it("reports lines that are none, and goes on", async () => {
  const long = `{"x":"${"y".repeat(5 * 1024 * 1024)}"}\n`;
  await writeFile(join(folder, "a.ndjson"), `${line(0)}not json\n${long}${line(1)}`);
  const { batches } = await readAll();
  expect(idsOf(batches)).toEqual([0, 1]);
  const place = join(folder, "a.ndjson");
  expect(batches.flatMap(({ problems }) => problems)).toMatchObject([
    { place: `${place}:2`, reason: "invalid_envelope" },
    { place: `${place}:3`, reason: "line_too_long" },
  ]);
});

it.each([
  ["gz", gzipSync],
  ["zst", zstdCompressSync],
])("gives what a broken .%s file still has, then the other files, then fails", async (name, pack) => {
  const packed = pack(Buffer.from(Array.from({ length: 20_000 }, (_, id) => line(id, id % 90)).join("")));
  await writeFile(join(folder, `a.ndjson.${name}`), packed.subarray(0, packed.length - 20));
  await writeFile(join(folder, "b.ndjson"), line(77_777));
  const { batches, failure } = await readAll();
  expect(idsOf(batches).at(-1)).toBe(77_777);
  expect(idsOf(batches).length).toBeGreaterThan(5_000);
  expect(failure).toMatchObject({ code: "source_unreadable", retryable: false });
  expect(String(failure)).toContain(`a.ndjson.${name}`);
});

it("refuses what is not there, is empty, has changed, or is not in files", async () => {
  const nothing = { code: "source_unreadable" };
  await expect(sourceOf(join(folder, "none")).parts(null, signal)).rejects.toMatchObject(nothing);
  await expect(sourceOf().parts(null, signal)).rejects.toMatchObject(nothing);
  await writeFile(join(folder, "a.ndjson"), line(0));
  const window = { by: "upload", from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" } as const;
  await expect(sourceOf().parts(window, signal)).rejects.toMatchObject({ code: "backfill_window" });
  const [part] = await sourceOf().parts({ ...window, by: "event" }, signal);
  await appendFile(join(folder, "a.ndjson"), line(1));
  const reading = async () => {
    if (part !== undefined) for await (const _ of sourceOf().read(part, signal));
  };
  await expect(reading()).rejects.toMatchObject({ code: "source_changed", retryable: false });
});

it("ends at once when it is aborted", async () => {
  await writeFile(join(folder, "a.ndjson.gz"), gzipSync(lines(0, 20_000, 100)));
  const stop = new AbortController();
  const source = sourceOf();
  const [part] = await source.parts(null, stop.signal);
  const reading = async () => {
    if (part === undefined) return;
    for await (const _ of source.read(part, stop.signal)) stop.abort(new Error("cancelled"));
  };
  await expect(reading()).rejects.toThrow("cancelled");
});

it("puts small files together and leaves large ones alone", () => {
  const file = (size: number) => ({ location: "x", size, tag: "t" });
  const sizes = (all: readonly number[]) =>
    groupFiles(all.map(file)).map(({ files }) => files.map(({ size }) => size));
  const mega = 1024 * 1024;
  expect(sizes([])).toEqual([]);
  expect(sizes([1, 2, 200 * mega, 3, 40 * mega, 40 * mega])).toEqual([
    [1, 2],
    [200 * mega],
    [3, 40 * mega],
    [40 * mega],
  ]);
  expect(sizes(range(0, 250)).map((group) => group.length)).toEqual([100, 100, 50]);
});

it("takes 100,000 files at most", async () => {
  const files = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ location: `/f/${at}.json`, size: 1, tag: "1" }));
  const partsOf = (count: number) =>
    createFileSource({
      location: "/f",
      store: { list: () => Promise.resolve(files(count)), open: () => expect.unreachable("opens no file") },
      now: () => 9,
    }).parts(null, signal);
  expect((await partsOf(100_000)).length).toBe(1_000);
  await expect(partsOf(100_001)).rejects.toMatchObject({ code: "source_unreadable", retryable: false });
});
