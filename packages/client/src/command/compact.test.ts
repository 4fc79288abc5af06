import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, it } from "vitest";
import { usePlace } from "./command.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const LIST = ["--list", "conversations"];
const SECRET = "what-an-erased-person-wrote";
/** What DuckDB cannot compress stands in its file as it is. */
const textOf = (): string => `${SECRET} ${randomBytes(600).toString("base64")}`;

it.each(["duckdb", "parquet", "csv"])("compact leaves no byte of what was deleted, in %s", async (kind) => {
  const file = kind === "duckdb" ? join(place.root, "it's a copy.duckdb") : join(folder(), "pull.duckdb");
  const to = `${kind}:${kind === "duckdb" ? file : folder()}`;
  for (let at = 0; at < 50; at += 1) place.service.put(`r${at}`, { text: textOf() });
  place.service.put("kept", { text: "what stays" });
  await command(["pull", "--to", to, ...LIST]);
  for (let at = 0; at < 50; at += 1) place.service.remove(`r${at}`);
  await command(["pull", "--to", to, ...LIST]);
  expect(readFileSync(file).includes(SECRET)).toBe(true);
  const { ino } = statSync(file);
  expect(await command(["compact", "--to", to])).toMatchObject({ code: 0, err: "" });
  expect(statSync(file).ino).not.toBe(ino);
  expect(readFileSync(file).includes(SECRET)).toBe(false);
  expect(readdirSync(kind === "duckdb" ? place.root : folder())).toHaveLength(kind === "duckdb" ? 1 : 2);
  place.service.put("later", 1);
  expect(await command(["pull", "--to", to, ...LIST])).toMatchObject({ code: 0 });
  expect(await command(["verify", "--to", to, ...LIST])).toMatchObject({
    code: 0,
    out: expect.stringContaining("equal, 2 records"),
  });
});

it("compact keeps what else is in a file of DuckDB", async () => {
  const file = join(place.root, "rewritten.duckdb");
  place.service.put("a", 1);
  await command(["pull", "--to", `duckdb:${file}`, ...LIST]);
  const run = async (sql: string): Promise<unknown> => {
    const instance = await DuckDBInstance.create(file);
    const connection = await instance.connect();
    try {
      return (await connection.runAndReadAll(sql)).getRowsJson();
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
  };
  await run(
    "CREATE SCHEMA mine; CREATE TABLE mine.notes (id INTEGER PRIMARY KEY); INSERT INTO mine.notes VALUES (7)",
  );
  await run("CREATE VIEW mine.ids AS SELECT _id FROM main.conversations");
  expect(await command(["compact", "--to", `duckdb:${file}`])).toMatchObject({ code: 0, err: "" });
  expect(await run("FROM mine.ids, mine.notes")).toEqual([["a", 7]]);
});
