import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { error, lines } from "../http/test-server.fixture.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { inDuckDb } from "./duckdb.fixture.ts";
import { beginFirstPass, changes } from "./service.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const NO_SERVICE = { EXPORT_API_URL: "http://127.0.0.1:9/api" };
/** Ways in which a pull ends before it receives anything. */
const AWAY = [
  ["a wrong key", { EXPORT_API_KEY: "wrong" }],
  ["no service", NO_SERVICE],
  ["the right key", {}],
] as const;

/** Files of the copy, without those of locks and of DuckDB. */
const contentOf = (root: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((file) => [file, readFileSync(file).toString("base64")]),
  );

const expectUntouched = async (to: string, what: string, said: string): Promise<void> => {
  const before = contentOf(place.root);
  const asked = place.service.server.asked.length;
  for (const [, env] of AWAY) {
    const { code, err } = await command(["pull", "--to", to, ...LIST], env);
    // A copy of another service is rejected with 2 first.
    if (code !== 2 || env !== NO_SERVICE)
      expect({ what, code, err }).toEqual({ what, code: 6, err: expect.stringContaining(said) });
  }
  for (const name of to === folder() ? ["verify", "compact"] : ["verify"])
    expect((await command([name, "--to", to, ...LIST])).code, what).not.toBe(0);
  expect(place.service.server.asked, what).toHaveLength(asked);
  expect(contentOf(place.root), what).toEqual(before);
};

const expectRefusals = async (
  damages: readonly (readonly [string, () => void | Promise<unknown>])[],
  to: string,
  said: string,
): Promise<void> => {
  const whole = mkdtempSync(join(tmpdir(), "whole-"));
  try {
    cpSync(place.root, whole, { recursive: true });
    for (const [what, damage] of damages) {
      rmSync(place.root, { recursive: true });
      cpSync(whole, place.root, { recursive: true });
      await damage();
      await expectUntouched(to, what, said);
    }
  } finally {
    rmSync(whole, { recursive: true });
  }
};

const stateFile = (): string => join(folder(), "state.json");
type Fields = Readonly<Record<string, unknown>>;
type State = Fields & { readonly lists: { readonly conversations: Fields } };
const changeState = (change: (state: State) => unknown) => (): void => {
  const state = JSON.parse(readFileSync(stateFile(), "utf8")) as State;
  writeFileSync(stateFile(), JSON.stringify(change(state)));
};
const withList = (change: (list: Fields) => unknown) =>
  changeState((state) => ({ ...state, lists: { conversations: change(state.lists.conversations) } }));

const without =
  (name: string) =>
  (fields: Fields): Fields =>
    Object.fromEntries(Object.entries(fields).filter(([one]) => one !== name));

const DAMAGE: readonly (readonly [string, () => void])[] = [
  ["no state", () => rmSync(stateFile())],
  ["an empty state", () => truncateSync(stateFile(), 0)],
  ["half of its state", () => truncateSync(stateFile(), 120)],
  ["a state of zeros", () => writeFileSync(stateFile(), Buffer.alloc(300))],
  ["null as state", changeState(() => null)],
  ["a list as state", changeState(() => [])],
  ["a state without lists", changeState(without("lists"))],
  ["a state with no lists", changeState((state) => ({ ...state, lists: {} }))],
  [
    "a state of another list",
    changeState((state) => ({ ...state, lists: { messages: state.lists.conversations } })),
  ],
  ["lists as an array", changeState((state) => ({ ...state, lists: [] }))],
  ["null as a list", withList(() => null)],
  ["a list without segments", withList(without("segments"))],
  ["a list without cursor", withList(without("cursor"))],
  ["a complete list without files", withList((list) => ({ ...list, segments: [] }))],
  ["null as segments", withList((list) => ({ ...list, segments: null }))],
  ["segments of another shape", withList((list) => ({ ...list, segments: ["00000001.ndjson"] }))],
  [
    "a segment elsewhere",
    withList((list) => ({ ...list, segments: [{ file: "../mine", lines: 1, deletions: 0, bytes: 1 }] })),
  ],
  ["renewals of another shape", changeState((state) => ({ ...state, renewals: { conversations: {} } }))],
  ["a state of another version", changeState((state) => ({ ...state, version: 2 }))],
];

/** Two files, and beside them files of another tool. */
const pulledFolder = async (): Promise<void> => {
  place.service.put("a", 1);
  await command(["pull", "--to", folder(), ...LIST]);
  place.service.put("b", 1);
  await command(["pull", "--to", folder(), ...LIST]);
  writeFileSync(join(folder(), "conversations/00000777.ndjson"), "of another tool\n");
  writeFileSync(join(folder(), "conversations/mine.txt"), "");
};

const first = [{ _id: "a", date_created: "2026-10-04T00:00:00.000000+00:00", csat: 1 }];
const breakOff = (): void =>
  place.service.next(...beginFirstPass(), lines(first, "broken"), error(401, "unauthorized"));

it("a folder without a whole state is refused before anything is asked or removed", async () => {
  await pulledFolder();
  await expectRefusals(DAMAGE, folder(), "pull with --replace");
});

it.each([
  ["state.json", 6],
  ["pull.lock", 6],
  ["conversations/00000001.ndjson", 0],
])("a folder in place of %s is named, and nothing is removed", async (name, code) => {
  await pulledFolder();
  rmSync(join(folder(), name), { force: true });
  mkdirSync(join(folder(), name));
  const before = contentOf(place.root);
  expect(await command(["pull", "--to", folder(), ...LIST], { EXPORT_API_KEY: "wrong" })).toMatchObject({
    code: code === 0 ? 3 : code,
  });
  expect(contentOf(place.root)).toEqual(before);
  const { err, ...ended } = await command(["verify", "--to", folder(), ...LIST]);
  expect(ended).toMatchObject({ code: 6 });
  expect(err).toContain(join(folder(), name));
});

const REPLACED = [
  "no state",
  "half of its state",
  "half a state",
  "a state with no lists",
  "a list without cursor",
];

describe("--replace of a folder", () => {
  it.each(
    DAMAGE.filter(([name]) => REPLACED.includes(name)),
  )("with %s keeps the old files until the new copy is complete", async (_, damage) => {
    await pulledFolder();
    damage();
    const old = contentOf(join(folder(), "conversations"));
    const pull = (...args: string[]) =>
      command(["pull", "--to", folder(), ...LIST, "--file-bytes", "1", ...args]);
    for (const env of [{ EXPORT_API_KEY: "wrong" }, {}]) {
      if (!("EXPORT_API_KEY" in env)) breakOff();
      expect(
        await command(["pull", "--to", folder(), ...LIST, "--file-bytes", "1", "--replace"], env),
      ).toMatchObject({
        code: 3,
      });
      expect(contentOf(join(folder(), "conversations"))).toMatchObject(old);
    }
    await command(["compact", "--to", folder(), ...LIST]);
    expect(contentOf(join(folder(), "conversations"))).toMatchObject(old);
    // A renewal goes on without the option.
    expect(await pull()).toMatchObject({ code: 0, out: expect.stringContaining("records received: 1,") });
    expect(await command(["verify", "--to", folder(), ...LIST])).toMatchObject({ code: 0 });
    const left = Object.keys(contentOf(join(folder(), "conversations")));
    for (const file of Object.keys(old)) expect(left.includes(file), file).toBe(file.endsWith("mine.txt"));
  });

  it("keeps an unusable state beside the new one", async () => {
    await pulledFolder();
    writeFileSync(stateFile(), '{"version":1');
    expect(await command(["pull", "--to", folder(), ...LIST, "--replace"])).toMatchObject({ code: 0 });
    expect(readFileSync(`${stateFile()}.unusable`, "utf8")).toBe('{"version":1');
  });

  it("begins a whole copy anew, and leaves other lists", async () => {
    await pulledFolder();
    mkdirSync(join(folder(), "messages"));
    writeFileSync(join(folder(), "messages/00000001.ndjson"), "old\n");
    expect(
      await command(["pull", "--to", folder(), ...LIST, "--replace", "--select", "conversations=csat"]),
    ).toMatchObject({
      code: 0,
      out: expect.stringContaining("records received: 2,"),
    });
    expect(existsSync(join(folder(), "messages/00000001.ndjson"))).toBe(true);
    expect(await command(["pull", "--to", folder(), "--list", "messages"])).toMatchObject({ code: 6 });
  });

  it("goes on after a kill in the middle of the first pass, with the old files in their place", async () => {
    await pulledFolder();
    rmSync(stateFile());
    const old = contentOf(join(folder(), "conversations"));
    place.service.next(...beginFirstPass());
    const answered = Promise.withResolvers<void>();
    place.service.next((response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write(`${JSON.stringify(first[0])}\n`);
      answered.resolve();
    });
    const main = fileURLToPath(new URL("main.ts", import.meta.url));
    const args = ["pull", "--to", folder(), ...LIST, "--file-bytes", "1", "--replace"];
    const child: ChildProcess = spawn(process.execPath, [main, ...args], {
      env: { EXPORT_API_URL: place.service.url, EXPORT_API_KEY: "k" },
      stdio: "ignore",
    });
    await answered.promise;
    await expect
      .poll(() => readdirSync(join(folder(), "conversations")), { timeout: 20_000 })
      .toContain("00000779.ndjson.tmp");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(contentOf(join(folder(), "conversations"))).toMatchObject(old);
    expect(await command(["pull", "--to", folder(), ...LIST])).toMatchObject({ code: 0 });
    expect(await command(["verify", "--to", folder(), ...LIST])).toMatchObject({ code: 0 });
    expect(readdirSync(join(folder(), "conversations"))).not.toContain("00000777.ndjson");
  });
});

it.each(["folder", "duckdb"])("--replace forgets what another pull began, in a %s", async (kind) => {
  const to = kind === "folder" ? folder() : `duckdb:${join(place.root, "copy.duckdb")}`;
  const pull = (...args: string[]) => command(["pull", "--to", to, ...LIST, "--file-bytes", "1", ...args]);
  place.service.put("a", 1);
  place.service.put("b", 1);
  await pull();
  place.service.next(changes(first, "2", false), error(401, "unauthorized"));
  const others = ["--since", "2026-10-04T12:00:00Z", "--select", "conversations=csat"];
  expect(await pull("--replace", ...others)).toMatchObject({ code: 3 });
  expect(await pull("--replace")).toMatchObject({
    code: 0,
    out: expect.stringContaining("records received: 2,"),
  });
  expect(await command(["verify", "--to", to])).toMatchObject({
    code: 0,
    out: expect.stringContaining("equal, 2 records"),
  });
});

it("a folder loses nothing to a pull with a wrong key, whatever its state does not name", async () => {
  await pulledFolder();
  const before = contentOf(folder());
  expect(await command(["pull", "--to", folder(), ...LIST], { EXPORT_API_KEY: "wrong" })).toMatchObject({
    code: 3,
  });
  expect(contentOf(folder())).toEqual(before);
  expect(await command(["verify", "--to", folder(), ...LIST])).toMatchObject({ code: 0 });
  expect(contentOf(folder())).toEqual(before);
});

it("a folder of which nothing is left goes on after a kill, at each instant", async () => {
  const pull = (...args: string[]) => command(["pull", "--to", folder(), ...LIST, ...args]);
  const files = (): string[] => readdirSync(join(folder(), "conversations")).toSorted();
  await pull();
  expect(files()).toEqual(["00000000.ndjson"]);
  // As after a crash between writing the change and its state.
  writeFileSync(join(folder(), "conversations/00000009.ndjson"), `${JSON.stringify(first[0])}\n`);
  place.service.put("b", 1);
  expect(await pull()).toMatchObject({ code: 0 });
  expect(files()).toEqual(["00000010.ndjson"]);
  const old = contentOf(join(folder(), "conversations"));
  place.service.remove("b");
  expect(await pull()).toMatchObject({ code: 0, out: expect.stringContaining("deletions among them: 1;") });
  expect(files()).toEqual(["00000000.ndjson"]);
  // As after a crash before the former files were removed.
  for (const [file, bytes] of Object.entries(old)) writeFileSync(file, Buffer.from(bytes, "base64"));
  expect(await pull()).toMatchObject({ code: 0 });
  expect(files()).toEqual(["00000000.ndjson"]);
  expect(await command(["verify", "--to", folder(), ...LIST])).toMatchObject({
    code: 0,
    out: expect.stringContaining("equal, 0 records"),
  });
});

it("a folder of files that are in the way of no copy is used", async () => {
  mkdirSync(join(folder(), "lost+found"), { recursive: true });
  mkdirSync(join(folder(), "conversations"));
  writeFileSync(join(folder(), "mine.txt"), "");
  expect(await command(["pull", "--to", folder(), ...LIST])).toMatchObject({ code: 0 });
});

const DUCKDB_DAMAGE: readonly (readonly [string, string])[] = [
  ["no state", "DROP TABLE pull_state; DROP TABLE pull_format"],
  ["a state without lists", "DELETE FROM pull_state"],
  ["half a state", "UPDATE pull_state SET state = state[:20]"],
  ["a state of another shape", "UPDATE pull_state SET state = '{}'"],
  [
    "a state without cursor",
    `UPDATE pull_state SET state = json_merge_patch(state, '{"cursor":null}')::VARCHAR`,
  ],
  ["null as state", "UPDATE pull_state SET state = NULL"],
  ["a state without tables", "DROP TABLE conversations"],
];

describe.each(["duckdb", "parquet", "csv"])("a copy of the kind %s", (kind) => {
  const file = (): string =>
    kind === "duckdb" ? join(place.root, "copy.duckdb") : join(folder(), "pull.duckdb");
  const to = (): string => `${kind}:${kind === "duckdb" ? file() : folder()}`;
  const recordsSql = "SELECT _id FROM conversations ORDER BY _id";

  const inSql = (damages: readonly (readonly [string, string])[]) =>
    damages.map(([what, sql]) => [what, () => inDuckDb(file(), sql)] as const);

  it("without a whole state is refused before anything is asked or removed", async () => {
    place.service.put("a", 1);
    expect(await command(["pull", "--to", to(), ...LIST])).toMatchObject({ code: 0 });
    const said = kind === "duckdb" ? "pull with --replace" : "pull into a new folder";
    await expectRefusals(inSql(DUCKDB_DAMAGE), to(), said);
  });

  it.runIf(kind === "duckdb")("whose tables of state are not those of the command is refused", async () => {
    place.service.put("a", 1);
    await command(["pull", "--to", to(), ...LIST]);
    const damages = inSql([
      ["tables of another form", "ALTER TABLE pull_state DROP COLUMN state"],
      ["no format", "DELETE FROM pull_format"],
      ["only one of two", "DROP TABLE pull_format"],
    ]);
    await expectRefusals(damages, to(), "move it away and pull again");
  });

  it.runIf(kind === "duckdb")("that was cut is refused", async () => {
    place.service.put("a", 1);
    await command(["pull", "--to", to(), ...LIST]);
    const { size } = statSync(file());
    const cuts = [size >> 1, 4_096, 1, 0].map(
      (length) => [`${length}`, () => truncateSync(file(), length)] as const,
    );
    await expectRefusals(cuts, to(), "move it away and pull again");
  });

  it.runIf(kind === "duckdb")("of which only the log is left is refused", async () => {
    place.service.put("a", 1);
    await command(["pull", "--to", to(), ...LIST]);
    renameSync(file(), `${file()}.wal`);
    const before = contentOf(place.root);
    for (const [, env] of AWAY) {
      const { code } = await command(["pull", "--to", to(), ...LIST], env);
      expect(code).toBe(6);
    }
    expect(contentOf(place.root)).toEqual(before);
  });

  it.runIf(kind === "duckdb")("leaves what others have put into its folder of parts", async () => {
    mkdirSync(`${file()}.parts`, { recursive: true });
    writeFileSync(`${file()}.parts/mine.txt`, "mine");
    expect(await command(["pull", "--to", to(), ...LIST])).toMatchObject({ code: 0 });
    expect(readFileSync(`${file()}.parts/mine.txt`, "utf8")).toBe("mine");
  });

  it.runIf(kind !== "duckdb")("of which files are left that no state names is refused", async () => {
    await command(["pull", "--to", to(), ...LIST]);
    rmSync(file());
    await inDuckDb(
      file(),
      "CREATE TABLE pull_files (list VARCHAR, changes BIGINT, written BIGINT, rows BIGINT, bytes BIGINT, sha256 VARCHAR)",
    );
    await expectUntouched(to(), "no state", "pull into a new folder");
    expect(await command(["pull", "--to", to(), ...LIST, "--replace"])).toMatchObject({ code: 2 });
  });

  it.runIf(kind === "duckdb").each(DUCKDB_DAMAGE.filter(([name]) => REPLACED.includes(name)))(
    "with %s is replaced, the old table staying until the new one is complete",
    async (_, sql) => {
      place.service.put("a", 1);
      await command(["pull", "--to", to(), ...LIST]);
      await inDuckDb(file(), "INSERT INTO conversations (_id) VALUES ('old')", sql);
      const before = await inDuckDb(file(), recordsSql);
      const pull = ["pull", "--to", to(), ...LIST, "--file-bytes", "1"];
      expect(await command([...pull, "--replace"], { EXPORT_API_KEY: "wrong" })).toMatchObject({ code: 3 });
      breakOff();
      expect(await command([...pull, "--replace"])).toMatchObject({ code: 3 });
      expect(await inDuckDb(file(), recordsSql)).toEqual(before);
      place.service.put("b", 1);
      expect(await command(pull)).toMatchObject({ code: 0 });
      expect(await inDuckDb(file(), recordsSql)).toEqual([["a"], ["b"]]);
      expect(await command(["verify", "--to", to(), ...LIST])).toMatchObject({ code: 0 });
    },
  );
});

it("a database of something else keeps its tables, and gets none", async () => {
  const file = join(place.root, "mine.duckdb");
  await inDuckDb(
    file,
    "CREATE TABLE Conversations (_id VARCHAR, mine INTEGER)",
    "INSERT INTO Conversations VALUES ('a', 1)",
  );
  place.service.put("a", 2);
  expect(await command(["pull", "--to", `duckdb:${file}`, ...LIST])).toMatchObject({ code: 6 });
  expect(await command(["verify", "--to", `duckdb:${file}`])).not.toMatchObject({ code: 0 });
  expect(await inDuckDb(file, "SELECT table_name FROM duckdb_tables()")).toEqual([["Conversations"]]);
  expect(await inDuckDb(file, "FROM Conversations")).toEqual([["a", 1]]);
});

it("a file of SQLite stays as it is, and nothing is fetched to open it", async () => {
  const file = join(place.root, "mine.duckdb");
  const bytes = Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(8_192)]);
  writeFileSync(file, bytes);
  const { code, err } = await command(["pull", "--to", `duckdb:${file}`, ...LIST]);
  expect({ code, err }).toEqual({ code: 6, err: expect.stringContaining(`opening ${file} failed`) });
  expect(err).not.toMatch(/http:|\.duckdb\/extensions/);
  expect(readFileSync(file)).toEqual(bytes);
  expect(readdirSync(place.root)).toEqual(["mine.duckdb"]);
});

describe("the state of lines on standard output", () => {
  it.each([
    ["half of it", '{"service":'],
    ["an empty one", ""],
    ["null", "null"],
    ["without a state", '{"service":"SERVICE","list":"conversations"}'],
    ["null as state", '{"service":"SERVICE","list":"conversations","state":null}'],
    ["an empty state", '{"service":"SERVICE","list":"conversations","state":{}}'],
  ])("%s is refused", async (_, text) => {
    const file = join(place.root, "cursor.json");
    writeFileSync(file, text.replace("SERVICE", place.service.url));
    const before = contentOf(place.root);
    for (const [, env] of AWAY) {
      const { code, out, err } = await command(["pull", "--to", "-", ...LIST, "--state", file], env);
      expect({ code, out, err }).toEqual({
        code: 6,
        out: "",
        err: expect.stringContaining("put it back, or empty"),
      });
    }
    expect(contentOf(place.root)).toEqual(before);
    expect(place.service.server.asked).toEqual([]);
  });

  it("is not made by a wrong key, and never replaced", async () => {
    const args = ["pull", "--to", "-", ...LIST, "--state", join(place.root, "cursor.json")];
    expect(await command(args, { EXPORT_API_KEY: "wrong" })).toMatchObject({ code: 3 });
    expect(readdirSync(place.root)).toEqual([]);
    expect(await command([...args, "--replace"])).toMatchObject({ code: 2 });
  });

  it("leaves a lock that is another tool's", async () => {
    const file = join(place.root, "cursor.json");
    writeFileSync(`${file}.lock`, "4711\n");
    expect(await command(["pull", "--to", "-", ...LIST, "--state", file, "--take-over"])).toMatchObject({
      code: 6,
    });
    expect(readFileSync(`${file}.lock`, "utf8")).toBe("4711\n");
  });
});
