import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { withinPlaces } from "./allowed-places.ts";
import type { FileStore } from "./file-store.ts";
import { createFolderStore } from "./folder-store.ts";

const { signal } = new AbortController();
const chunksOf = async (chunks: AsyncIterable<Buffer>): Promise<Buffer[]> => {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
};
const everything: FileStore = {
  list: (location) => Promise.resolve([{ location, size: 1, tag: "t" }]),
  open: async function* () {
    yield await Promise.resolve(Buffer.from("x"));
  },
};
const store = withinPlaces(everything, ["/data/exports/", "s3://archive/2026"]);

it.each([
  "/data/exports",
  "/data/exports/a.ndjson",
  "/data/exports/x/../a",
  "s3://archive/2026",
  "s3://archive/2026/10/a",
])("reads %s", async (location) => {
  expect(await store.list(location, signal)).toHaveLength(1);
  expect(await chunksOf(store.open({ location, size: 1, tag: "t" }, signal))).toHaveLength(1);
});

it.each([
  "/data",
  "/data/exports2",
  "/data/exports/../keys",
  "/etc",
  "s3://archive",
  "s3://archive/20261",
  "s3://other/2026",
  "s3://archive/2025/../2026",
  "s3://archive/2026/../secret",
  "s3://archive/2026/10/./../../secret/a",
  "s3://archive/2026/..",
])("refuses %s, to list and to open", async (location) => {
  const refused = { code: "source_not_allowed", retryable: false };
  await expect(store.list(location, signal)).rejects.toMatchObject(refused);
  const opened = chunksOf(store.open({ location, size: 1, tag: "t" }, signal));
  await expect(opened).rejects.toThrow("BACKFILL_LOCATIONS");
});

it("refuses everything while no place is named", async () => {
  await expect(withinPlaces(everything, []).list("/data", signal)).rejects.toThrow("BACKFILL_LOCATIONS");
});

it("follows symbolic links within its places, and none out of them", async () => {
  const root = await mkdtemp(join(tmpdir(), "allowed-places-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const [place, elsewhere] = [join(root, "place"), join(root, "elsewhere")];
  for (const folder of ["2026", "links"]) await mkdir(join(place, folder), { recursive: true });
  await mkdir(elsewhere);
  const [inside, outside] = [join(place, "2026", "a.ndjson"), join(elsewhere, "b.ndjson")];
  await writeFile(inside, "{}\n");
  await writeFile(outside, "{}\n");
  await symlink(inside, join(place, "2026", "same.ndjson"));
  // The operator may name a link.
  await symlink(place, join(root, "exports"));
  const given = join(root, "exports");
  const folders = withinPlaces(createFolderStore(), [given]);

  const files = await folders.list(given, signal);
  expect(files.map(({ location }) => location)).toEqual(
    ["a.ndjson", "same.ndjson"].map((name) => join(given, "2026", name)),
  );
  for (const file of files) expect(await chunksOf(folders.open(file, signal))).toHaveLength(1);
  await expect(folders.list(join(given, "nothing"), signal)).rejects.toMatchObject({
    code: "source_unreadable",
  });

  await symlink(outside, join(place, "links", "file.ndjson"));
  await symlink(elsewhere, join(place, "links", "folder"));
  const refused = { code: "source_not_allowed", retryable: false };
  for (const location of ["links", "links/file.ndjson", "links/folder", "links/folder/b.ndjson", ""])
    await expect(folders.list(join(given, location), signal), location).rejects.toMatchObject(refused);
  // It becomes a link before it is read.
  const [first] = files;
  await rm(inside);
  await symlink(outside, inside);
  await expect(chunksOf(folders.open(first ?? raise(), signal))).rejects.toMatchObject(refused);
});

const raise = (): never => {
  throw new Error("nothing was listed");
};
