import { existsSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, it, vi } from "vitest";
import { useRoot } from "../../root.fixture.ts";
import { openDuckDbFile } from "./duckdb-file.ts";

const path = useRoot();

it("quotes no value in an error", async () => {
  const file = await openDuckDbFile(path("copy.duckdb"), {});
  try {
    for (const sql of ["SELECT $1::JSON", "SELECT $1::BIGINT", `SELECT json_transform($1, '{"a":"JSON"}')`]) {
      const error: unknown = await file.rows(sql, ["{what users wrote"]).catch((one: unknown) => one);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).stack).not.toContain("users");
      expect((error as Error).message).toContain("DuckDB refused a value of a record");
    }
  } finally {
    await file.close();
  }
});

it("removes its folder while the file is still locked", async () => {
  const file = await openDuckDbFile(path("copy.duckdb"), {});
  let isThere = true;
  const closing = vi.spyOn(DuckDBInstance.prototype, "closeSync").mockImplementation(() => {
    isThere = existsSync(file.parts);
  });
  try {
    await file.close();
  } finally {
    const instances = closing.mock.contexts;
    closing.mockRestore();
    for (const instance of instances as DuckDBInstance[]) instance.closeSync();
  }
  expect(isThere).toBe(false);
});
