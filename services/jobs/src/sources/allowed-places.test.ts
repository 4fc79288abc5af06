import { expect, it } from "vitest";
import { withinPlaces } from "./allowed-places.ts";
import type { FileStore } from "./file-store.ts";

const { signal } = new AbortController();
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
  expect(store.open({ location, size: 1, tag: "t" }, signal)).toBeDefined();
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
])("refuses %s, to list and to open", async (location) => {
  const refused = { code: "source_not_allowed", retryable: false };
  await expect(store.list(location, signal)).rejects.toMatchObject(refused);
  expect(() => store.open({ location, size: 1, tag: "t" }, signal)).toThrow("BACKFILL_LOCATIONS");
});

it("refuses everything while no place is named", async () => {
  await expect(withinPlaces(everything, []).list("/data", signal)).rejects.toThrow("BACKFILL_LOCATIONS");
});
