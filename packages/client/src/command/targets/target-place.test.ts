import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { targetPlace } from "./target-place.ts";

it.each([
  ["-", { kind: "output" }],
  ["export", { kind: "folder", path: resolve("export") }],
  ["~", { kind: "folder", path: homedir() }],
  ["~/export", { kind: "folder", path: join(homedir(), "export") }],
  ["duckdb:~/a.duckdb", { kind: "duckdb", path: join(homedir(), "a.duckdb") }],
  ["duckdb:./~/a.duckdb", { kind: "duckdb", path: resolve("~/a.duckdb") }],
  ["duckdb:./:memory:", { kind: "duckdb", path: resolve("./:memory:") }],
  ["duckdb:/a/../b/md:x", { kind: "duckdb", path: "/b/md:x" }],
  ["duckdb:a*.duckdb", { kind: "duckdb", path: resolve("a*.duckdb") }],
  ["parquet:../tables/", { kind: "parquet", path: resolve("../tables") }],
  ["csv:it's", { kind: "csv", path: resolve("it's") }],
  ["./md:x", { kind: "folder", path: resolve("md:x") }],
  ["C:/export", { kind: "folder", path: resolve("C:/export") }],
])("%s is one place", (to, place) => {
  expect(targetPlace(to)).toEqual(place);
});

it.each([
  ["duckdb::memory:", "is no local path"],
  ["duckdb::memory:x", "is no local path"],
  ["duckdb:md:", "is no local path"],
  ["duckdb:md:my_database", "is no local path"],
  ["duckdb:motherduck:x", "is no local path"],
  ["duckdb:s3://bucket/x.duckdb", "is no local path"],
  ["duckdb:https://host/x.duckdb", "is no local path"],
  ["duckdb:file:///tmp/x.duckdb", "is no local path"],
  ["duckdb:duckdb:x", "is no local path"],
  ["duckdb:~other/x", "is no local path"],
  ["parquet:s3://bucket/x", "is no local path"],
  ["s3://bucket/x", "is no local path"],
  ["file:x", "is no local path"],
  ["duckbd:x", "is no local path"],
  ["~other", "is no local path"],
  ["", "names no file or folder"],
  ["duckdb:", "names no file or folder"],
  ["parquet:a*b", "takes no path with"],
  ["csv:a[1]", "takes no path with"],
])("%s is refused", (to, said) => {
  expect(() => targetPlace(to)).toThrow(said);
});
