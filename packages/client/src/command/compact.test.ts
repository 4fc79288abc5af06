import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { error } from "../http/test-server.fixture.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { inDuckDb } from "./duckdb.fixture.ts";
import { beginFirstPass } from "./service.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const SECRET = "what-an-erased-person-wrote";
/** Random bytes, because DuckDB would compress other text and hide it from the search. */
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

it.each([
  ["duckdb", ["copy.duckdb"]],
  ["parquet", ["conversations.parquet", "pull.duckdb"]],
  ["csv", ["conversations.csv"]],
  ["-", ["cursor.json"]],
  ["folder", ["state.json"]],
])("a link stays, and no old byte behind it, of %s: %s", async (kind, names) => {
  // Another disk if there is one, so that renames across it fail.
  const elsewhere = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "client-"));
  const root = ["duckdb", "-"].includes(kind) ? place.root : folder();
  const to = { duckdb: `duckdb:${join(root, "copy.duckdb")}`, "-": "-", folder: folder() }[kind];
  const args = ["--to", to ?? `${kind}:${folder()}`, ...LIST];
  const pull = () =>
    command(["pull", ...args, ...(kind === "-" ? ["--state", join(root, "cursor.json")] : [])]);
  try {
    place.service.put("a", { text: textOf() });
    place.service.put("b", 1);
    await pull();
    for (const name of names) {
      execFileSync("mv", [join(root, name), join(elsewhere, `real-${name}`)]);
      symlinkSync(join(elsewhere, `real-${name}`), join(root, name));
    }
    const before = names.map((name) => readFileSync(join(root, name)));
    place.service.remove("a");
    expect(await pull()).toMatchObject({ code: 0 });
    if (kind !== "-") expect(await command(["compact", ...args])).toMatchObject({ code: 0, err: "" });
    for (const [at, name] of names.entries()) {
      expect(lstatSync(join(root, name)).isSymbolicLink(), name).toBe(true);
      const now = readFileSync(join(elsewhere, `real-${name}`));
      expect(now.equals(before[at] ?? now), name).toBe(false);
      expect(now.includes(SECRET), name).toBe(false);
    }
    expect(readdirSync(elsewhere).toSorted()).toEqual(names.map((name) => `real-${name}`));
  } finally {
    rmSync(elsewhere, { recursive: true });
  }
});

it.each(["parquet", "csv"])("compact writes what a pull could not, in %s", async (kind) => {
  const args = ["--to", `${kind}:${folder()}`, ...LIST];
  const file = join(folder(), `conversations.${kind}`);
  place.service.put("erased", { text: textOf() });
  place.service.put("kept", 1);
  await command(["pull", ...args]);
  const old = readFileSync(file);
  place.service.remove("erased");
  rmSync(file);
  mkdirSync(join(file, "in the way"), { recursive: true });
  for (const name of ["pull", "compact"])
    expect(await command([name, ...args]), name).toMatchObject({ code: 1 });
  rmSync(file, { recursive: true });
  writeFileSync(file, old);
  expect(await command(["compact", "--to", `${kind}:${folder()}`])).toMatchObject({ code: 0, err: "" });
  expect(await command(["verify", ...args])).toMatchObject({
    code: 0,
    out: expect.stringContaining("equal, 1 records"),
  });
});

it.each([
  "folder",
  "duckdb",
  "parquet",
])("compact asks for a pull while a copy is made anew, in %s", async (kind) => {
  const path = kind === "duckdb" ? join(place.root, "copy.duckdb") : folder();
  const args = ["--to", kind === "folder" ? path : `${kind}:${path}`, ...LIST];
  place.service.put("a", 1);
  await command(["pull", ...args]);
  place.service.remove("a");
  place.service.next(error(410, "resource_not_found"), ...beginFirstPass(), error(401, "unauthorized"));
  expect(await command(["pull", ...args])).toMatchObject({ code: 3 });
  expect(await command(["compact", ...args])).toMatchObject({
    code: 6,
    err: "a new copy of conversations is not complete, and the old one stays: pull first\n",
  });
  expect(await command(["pull", ...args])).toMatchObject({ code: 0 });
  expect(await command(["compact", ...args])).toMatchObject({ code: 0, err: "" });
});

it("compact keeps what else is in a file of DuckDB", async () => {
  const file = join(place.root, "rewritten.duckdb");
  place.service.put("a", 1);
  await command(["pull", "--to", `duckdb:${file}`, ...LIST]);
  await inDuckDb(
    file,
    "CREATE SCHEMA mine; CREATE TABLE mine.notes (id INTEGER PRIMARY KEY); INSERT INTO mine.notes VALUES (7)",
    "CREATE VIEW mine.ids AS SELECT _id FROM main.conversations",
    "CREATE TABLE mine.p (id INTEGER PRIMARY KEY); CREATE TABLE mine.c (p INTEGER REFERENCES mine.p (id))",
    "INSERT INTO mine.p VALUES (8)",
    "INSERT INTO mine.c VALUES (8)",
  );
  expect(await command(["compact", "--to", `duckdb:${file}`])).toMatchObject({ code: 0, err: "" });
  expect(await inDuckDb(file, "FROM mine.ids, mine.notes, mine.c")).toEqual([["a", 7, 8]]);
  expect(
    await inDuckDb(file, "SELECT referenced_table FROM duckdb_constraints() WHERE table_name = 'c'"),
  ).toEqual([["p"]]);
});

it("compact names the table of others that it cannot copy, but no value, and leaves the file", async () => {
  const file = join(place.root, "left.duckdb");
  place.service.put("a", 1);
  await command(["pull", "--to", `duckdb:${file}`, ...LIST]);
  await inDuckDb(
    file,
    "CREATE TABLE tree (id VARCHAR PRIMARY KEY, up VARCHAR REFERENCES tree (id))",
    `INSERT INTO tree VALUES ('${SECRET}', NULL)`,
    `INSERT INTO tree VALUES ('leaf', '${SECRET}')`,
  );
  const { code, err } = await command(["compact", "--to", `duckdb:${file}`]);
  expect({ code, err }).toEqual({
    code: 6,
    err: 'copying the table "main"."tree" failed: DuckDB refused a value of a record: Constraint Error. Keep it in another file\n',
  });
  expect(readdirSync(place.root)).toEqual(["left.duckdb"]);
  expect(await inDuckDb(file, "SELECT count(*)::INTEGER FROM conversations, tree")).toEqual([[2]]);
});
