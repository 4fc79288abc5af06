import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { error, lines } from "../http/test-server.fixture.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { inDuckDb } from "./duckdb.fixture.ts";
import { lockForWriting } from "./targets/writer-lock.ts";
import { beginFirstPass, FUTURE, type Stored, WATERMARK } from "./service.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const filesOf = (): string[] => readdirSync(join(folder(), "conversations")).toSorted();
const storedLines = (decode: (bytes: Buffer) => Buffer = (bytes) => bytes): [string, unknown][] =>
  filesOf().flatMap((file) =>
    decode(readFileSync(join(folder(), "conversations", file)))
      .toString()
      .split("\n")
      .filter((line) => line !== "")
      .map((line): [string, unknown] => {
        const { _id, csat, deleted } = JSON.parse(line) as Stored & { deleted?: true };
        return [_id, deleted === true ? "deleted" : csat];
      }),
  );
const pull = (...args: string[]) => command(["pull", "--to", folder(), ...args]);

describe("pull into a folder", () => {
  it("takes everything, then what changed, and removes what is deleted", async () => {
    place.service.put("a", 1);
    place.service.put("b", 1);
    place.service.put("c", 1);
    expect(await pull()).toMatchObject({
      code: 7,
      out: `conversations: records received: 3, deletions among them: 0; complete up to ${WATERMARK}\nmessages: not pulled, the key may not read them; --list names what to pull\nend_users: not pulled, the key may not read them; --list names what to pull\n`,
    });
    place.service.put("b", 2);
    place.service.put("d", 1);
    await pull("--no-compact");
    place.service.remove("a");
    await pull("--no-compact");
    const later: [string, unknown][] = [
      ["a", 1],
      ["b", 1],
      ["c", 1],
      ["b", 2],
      ["d", 1],
      ["a", "deleted"],
    ];
    expect(storedLines()).toEqual(later);
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
    // Without --no-compact deletions are applied at once.
    await pull();
    expect(storedLines()).toEqual([
      ["b", 1],
      ["c", 1],
      ["b", 2],
      ["d", 1],
    ]);
    expect(filesOf()).toEqual(["00000001.1.ndjson", "00000002.ndjson"]);
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
    await command(["compact", "--to", folder()]);
    expect(storedLines()).toEqual([
      ["b", 2],
      ["d", 1],
      ["c", 1],
    ]);
    expect(filesOf()).toHaveLength(1);
    expect(await command(["verify", "--to", folder()])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^conversations: equal, 3 records, checksum [0-9a-f]{32}\n$/),
    });
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ["gz", gunzipSync],
    ["zst", zstdDecompressSync],
  ])("compresses files with %s", async (coding, decode) => {
    for (let at = 0; at < 40; at += 1) place.service.put(`r${at}`, "text ".repeat(40));
    await pull("--compress", coding, "--file-bytes", "3000");
    expect(storedLines(decode)).toHaveLength(40);
    expect(filesOf().every((file) => file.endsWith(`.ndjson.${coding}`))).toBe(true);
    place.service.put("r7", "new");
    place.service.remove("r8");
    await pull("--file-bytes", "3000");
    expect(storedLines(decode)).toHaveLength(40);
    await command(["compact", "--to", folder(), "--file-bytes", "3000"]);
    expect(storedLines(decode)).toHaveLength(39);
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
  });

  it("goes on in the middle of the first pass, and removes what no state names", async () => {
    for (let at = 0; at < 8; at += 1) place.service.put(`r${at}`, at);
    const records = Array.from({ length: 3 }, (_, at) => ({
      _id: `r${at}`,
      date_created: `2026-10-04T00:00:0${at}.000000+00:00`,
      csat: at,
    }));
    place.service.next(...beginFirstPass("8"), lines(records, "broken"), error(401, "unauthorized"));
    expect(await pull(...LIST, "--file-bytes", "1")).toMatchObject({ code: 3 });
    expect(storedLines().map(([id]) => id)).toEqual(["r0", "r1", "r2"]);
    expect(await command(["verify", "--to", folder()])).toMatchObject({
      code: 6,
      err: "the copy of conversations is not complete: pull it first\n",
    });
    writeFileSync(join(folder(), "conversations", "00000009.ndjson"), '{"_id":"x"}\n');
    writeFileSync(join(folder(), "conversations", "00000010.ndjson.tmp"), '{"_id":"x');
    writeFileSync(join(folder(), "conversations", "mine.txt"), "");
    expect(await pull(...LIST)).toMatchObject({ code: 0 });
    expect(storedLines().map(([id]) => id)).toEqual(["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"]);
    expect(filesOf()).toContain("mine.txt");
  });

  it("keeps the fields that were selected, and what changed since", async () => {
    place.service.put("a", 1);
    const since = ["--since", "2026-10-04T12:00:00Z", ...LIST];
    await pull(...since, "--select", "conversations=csat");
    place.service.put("b", 2);
    await pull(...LIST);
    expect(readFileSync(join(folder(), "conversations/00000001.ndjson"), "utf8")).toBe(
      '{"_id":"b","csat":2}\n',
    );
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
    expect(await pull("--since", "2026-10-01T00:00:00Z", ...LIST)).toMatchObject({
      code: 2,
    });
    expect(await pull("--select", "conversations=date_created")).toMatchObject({ code: 2 });
  });

  it("is refused while another process writes, unless it takes over", async () => {
    await pull(...LIST);
    const file = join(folder(), "pull.lock");
    const other = await lockForWriting(file, { beatMs: 20 });
    expect(await pull(...LIST)).toMatchObject({
      code: 6,
      err: expect.stringContaining("another process writes this copy"),
    });
    expect(await pull(...LIST, "--take-over")).toMatchObject({ code: 0 });
    await expect(other.check()).rejects.toThrow("has taken");
    await other.release();
    expect(await pull(...LIST)).toMatchObject({ code: 0 });
  });

  it("is refused when a file is missing or the state is another's", async () => {
    place.service.put("a", 1);
    await pull(...LIST);
    const other = `${place.service.url}/other`;
    const refused = {
      code: 2,
      err: expect.stringContaining(`is a copy of ${place.service.url}, not of ${other}`),
    };
    expect(await command(["pull", "--to", folder(), "--url", other])).toMatchObject(refused);
    rmSync(join(folder(), "conversations/00000001.ndjson"));
    expect(await pull()).toMatchObject({ code: 6, err: expect.stringContaining("is missing") });
  });
});

describe("pull into DuckDB", () => {
  it("keeps one row a record, with typed columns", async () => {
    const file = join(place.root, "copy.duckdb");
    const to = `duckdb:${file}`;
    place.service.put("a", { score: 1 });
    place.service.put("b", null);
    place.service.put("it's", 1);
    expect(await command(["pull", "--to", to, ...LIST])).toMatchObject({ code: 0 });
    place.service.put("a", { score: 2 });
    place.service.remove("b");
    expect(await command(["pull", "--to", to, ...LIST])).toMatchObject({ code: 0 });
    expect(await command(["verify", "--to", to])).toMatchObject({ code: 0 });
    const sql = "SELECT _id, date_created::VARCHAR, csat::VARCHAR, language FROM conversations ORDER BY _id";
    expect(await inDuckDb(file, sql)).toEqual([
      ["a", "2026-10-04 00:00:00", '{"score":2}', null],
      ["it's", "2026-10-04 00:00:02", "1", null],
    ]);
  });
});

describe.each(["duckdb", "parquet", "csv"])("pull into %s", (kind) => {
  it("takes halves of surrogate pairs, in keys too", async () => {
    place.service.put("a", { "k\udc00": "v\ud83d", whole: "\u{1f600}", text: "\\ud800" });
    const to = `${kind}:${join(place.root, "copy")}`;
    expect(await command(["pull", "--to", to, ...LIST])).toMatchObject({ code: 0 });
    expect(await command(["verify", "--to", to])).toMatchObject({ code: 0 });
  });
});

describe("pull to standard output", () => {
  it("gives lines, and goes on from the state that it keeps", async () => {
    const args = ["pull", "--to", "-", ...LIST, "--state", join(place.root, "cursor.json")];
    place.service.put("a", 1);
    const { out, err } = await command(args);
    expect(out).toBe('{"_id":"a","date_created":"2026-10-04T00:00:00.000000+00:00","csat":1}\n');
    expect(err).toContain("records received: 1,");
    place.service.remove("a");
    expect((await command(args)).out).toBe(`{"_id":"a","deleted":true,"deleted_at":"${WATERMARK}"}\n`);
  });
});

describe("verify", () => {
  it("names what is missing, extra and different, but not what has changed since", async () => {
    for (const id of ["a", "b", "c"]) place.service.put(id, 1);
    await pull(...LIST);
    const file = join(folder(), "conversations/00000001.ndjson");
    const [a = "", b = ""] = readFileSync(file, "utf8").split("\n");
    writeFileSync(file, `${a.replace('"csat":1', '"csat":7')}\n${b.replace('"b"', '"x"')}\n`);
    place.service.put("c", 2);
    place.service.moveOn();
    const { code, out } = await command(["verify", "--to", folder(), "--json"]);
    expect(code).toBe(5);
    expect(JSON.parse(out)).toMatchObject({
      equal: false,
      verified: {
        local: 2,
        remote: 3,
        missing: 1,
        extra: 1,
        different: 1,
        changed: 1,
        examples: ["b", "x", "a"],
      },
    });
  });
});

describe("the command", () => {
  it.each<[readonly string[], string]>([
    [["pull"], "--to: where is the copy"],
    [["pull", "x"], "x: not expected; the copy is named by --to"],
    [["push", "--to", "x"], "command: must be one of pull, verify, compact"],
    [["pull", "--to", "x", "--list", "users"], "--list: must be one of"],
    [["pull", "--to", "x", "--compress", "br"], "--compress: must be one of plain, gz, zst"],
    [["pull", "--to", "x", "--since", "yesterday"], "--since: must be an existing ISO 8601 instant"],
    [
      ["pull", "--to", "x", "--since", "2026-10-01T00:00:00"],
      "--since: must be an existing ISO 8601 instant",
    ],
    [
      ["pull", "--to", "x", "--since", "2026-02-30T00:00:00Z"],
      "--since: must be an existing ISO 8601 instant",
    ],
    [["pull", "--to", "x", "--since", FUTURE], "is to come"],
    [["pull", "--to", "x", "--select", "csat"], "--select: must be LIST=FIELD,FIELD"],
    [["pull", "--to", "x", "--key", "secret"], "Unknown option '--key'"],
    [["pull", "--to", "-"], "standard output takes the pull of one list"],
    [["pull", "--to", "x", "--file-bytes", "0"], "--file-bytes: must be a number above 0"],
    [["pull", "--to", "x", "--file-bytes", "999999999"], "--file-bytes: at most"],
    [["pull", "--to", "x", "--select", "conversations=csta"], "--select: conversations have no csta"],
    [
      ["pull", "--to", "x", "--select", "conversations=csat", "--select", "conversations=language"],
      "--select: conversations is there twice",
    ],
    [["pull", "--to", "x", "--url", "ftp://host/api"], "--url: must be an address that begins with http"],
    [["pull", "--to", "x", "--url", "https://me:pw@host/api"], "--url: must have no user, no password"],
  ])("refuses %j", async (args, said) => {
    const { code, err } = await command(args);
    expect(code).toBe(2);
    expect(err).toContain(said);
  });

  it("needs a key, from the environment or a file", async () => {
    const args = ["pull", "--to", folder(), ...LIST];
    expect(await command(args, { EXPORT_API_KEY: "" })).toMatchObject({ code: 2 });
    const file = join(place.root, "key");
    writeFileSync(file, "k\n");
    expect(await command([...args, "--key-file", file], { EXPORT_API_KEY: "" })).toMatchObject({ code: 0 });
    expect(await command([...args, "--key-file", join(place.root, "none")])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--key-file: ENOENT"),
    });
    expect(await command(args, { EXPORT_API_KEY: "wrong" })).toMatchObject({ code: 3 });
  });

  it("says that the service is away", async () => {
    const url = "http://no-such-host.invalid/api";
    expect(await command(["pull", "--to", folder()], { EXPORT_API_URL: url })).toMatchObject({ code: 4 });
  });

  it("shows how it is used", async () => {
    expect(await command(["--help"])).toMatchObject({ code: 0, out: expect.stringContaining("usage:") });
  });
});
