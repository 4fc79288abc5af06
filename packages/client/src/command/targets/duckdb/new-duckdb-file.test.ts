import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { useRoot } from "../../root.fixture.ts";
import { openDuckDb } from "./duckdb.ts";
import { openDuckDbFile } from "./duckdb-file.ts";
import { makeDuckDbFile } from "./new-duckdb-file.ts";

const path = useRoot();
const fileOf = (): string => path("copy.duckdb");
const TABLE = "CREATE TABLE one (n INTEGER)";

const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

it("has its name only when it is whole", async () => {
  const names: string[][] = [];
  const failed = failing("EIO");
  const made = makeDuckDbFile(fileOf(), {}, [TABLE], () => {
    names.push(readdirSync(path()));
    return failed();
  });
  await expect(made).rejects.toThrow("EIO");
  expect(names).toEqual([[expect.stringMatching(/^copy\.duckdb\.new-/)]]);
  expect(readdirSync(path())).toEqual([]);
});

it("is made where there are no hard links, by one of many processes", async () => {
  const results = await Promise.allSettled(
    [1, 2, 3].map(() => makeDuckDbFile(fileOf(), {}, [TABLE], failing("EPERM"))),
  );
  expect(results.some(({ status }) => status === "fulfilled")).toBe(true);
  expect(readdirSync(path())).toEqual(["copy.duckdb"]);
  const file = await openDuckDbFile(fileOf(), {});
  expect(await file.rows("SELECT count(*)::INTEGER FROM one")).toEqual([[0]]);
  await file.close();
});

it("sweeps what a killed process left, and nothing else", async () => {
  const left = `copy.duckdb.new-${randomUUID()}`;
  const others = ["copy.duckdb.new-backup", "copy.duckdb2", `other.duckdb.new-${randomUUID()}`];
  for (const name of [left, `${left}.wal`, ...others]) writeFileSync(path(name), "half");
  const target = await openDuckDb({ file: fileOf(), service: "s", lists: ["conversations"] });
  await target.close();
  expect(readdirSync(path()).toSorted()).toEqual(["copy.duckdb", ...others].toSorted());
});

it("is not made over the log of a file that is gone", async () => {
  writeFileSync(`${fileOf()}.wal`, "what came last");
  await expect(makeDuckDbFile(fileOf(), {}, [TABLE])).rejects.toThrow("move the log away");
  expect(readFileSync(`${fileOf()}.wal`, "utf8")).toBe("what came last");
});
