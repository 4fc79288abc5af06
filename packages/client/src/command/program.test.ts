import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Answer,
  error,
  json,
  lines,
  startServer,
  type TestServer,
} from "../http/test-server.fixture.ts";
import { run } from "./program.ts";

const WATERMARK = "2026-10-05T00:00:00.000000Z";
const FUTURE = "2126-10-05T00:00:00.000000Z";

/** A service in miniature: records by creation, and a feed of changes whose cursors count its entries. */
type Service = {
  readonly server: TestServer;
  readonly url: string;
  /** Stores a record, or deletes it. */
  put(id: string, value: unknown): void;
  remove(id: string): void;
  /** The next request is answered by this. */
  next(answer: Answer): void;
  /** Tells this watermark from now on. */
  tell(watermark: string): void;
};

type Stored = { readonly _id: string; readonly date_created: string; readonly csat: unknown };

const startService = async (): Promise<Service> => {
  const records = new Map<string, Stored>();
  let entries: string[] = [];
  let watermark = WATERMARK;
  const special: Answer[] = [];
  const deleted = { deleted: true, deleted_at: WATERMARK };

  const changesFrom = (cursor: number): object[] =>
    [...new Set(entries.slice(cursor))].map((id) => records.get(id) ?? { _id: id, ...deleted });

  const serve: Answer = (response, request) => {
    const asked = special.shift();
    if (asked !== undefined) return asked(response, request);
    const url = new URL(request.url ?? "", "http://x");
    const isLines = request.headers.accept === "application/x-ndjson";
    if (request.headers.authorization !== "Bearer k") return error(401, "unauthorized")(response, request);
    if (!url.pathname.endsWith("conversations")) return error(403, "authorization_error")(response, request);
    if (url.pathname.includes("/changes/")) {
      const since = url.searchParams.get("stored_since") === null ? 0 : entries.length;
      const data = changesFrom(Number(url.searchParams.get("cursor") ?? since));
      const meta = { next_cursor: String(entries.length), end_of_stream: true };
      if (!isLines) return json({ data, meta }, { "x-export-watermark": watermark })(response, request);
      return lines(data, { count: data.length, watermark, ...meta })(response, request);
    }
    const from = url.searchParams.get("created_since") ?? "";
    const all = [...records.values()]
      .filter(({ date_created: date }) => date >= from)
      .sort((a, b) => (a.date_created < b.date_created ? -1 : 1));
    return lines(all, { count: all.length, watermark })(response, request);
  };
  const server = await startServer(serve);
  return {
    server,
    url: server.baseUrl,
    put: (id, value) => {
      const second = String(records.size % 60).padStart(2, "0");
      const date = records.get(id)?.date_created ?? `2026-10-04T00:00:${second}.000000+00:00`;
      records.set(id, { _id: id, date_created: date, csat: value });
      entries = [...entries, id];
    },
    remove: (id) => {
      records.delete(id);
      entries = [...entries, id];
    },
    next: (answer) => special.push(answer),
    tell: (told) => (watermark = told),
  };
};

let service: Service;
let root: string;
beforeEach(async () => {
  service = await startService();
  root = mkdtempSync(join(tmpdir(), "client-"));
});
afterEach(async () => {
  await service.server.close();
  rmSync(root, { recursive: true, force: true });
});

const textOf = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? "";

const command = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const signal = new AbortController().signal;
  const given = { EXPORT_API_URL: service.url, EXPORT_API_KEY: "k", ...env };
  const code = await run(args, { env: given, stdout, stderr, signal });
  return { code, out: textOf(stdout), err: textOf(stderr) };
};

const folder = (): string => join(root, "copy");
const filesOf = (): string[] => readdirSync(join(folder(), "conversations")).toSorted();
/** The ids and values of the lines of all files, in order. */
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
    service.put("a", 1);
    service.put("b", 1);
    service.put("c", 1);
    expect(await pull()).toMatchObject({
      code: 0,
      out: `conversations: 3 records came, 0 of them deletions; complete up to ${WATERMARK}\nmessages: skipped, the key may not read them\nend_users: skipped, the key may not read them\n`,
    });
    service.put("b", 2);
    service.put("d", 1);
    await pull("--no-compact");
    service.remove("a");
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
    // Without --no-compact a deletion is carried out at once.
    await pull();
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
    for (let at = 0; at < 40; at += 1) service.put(`r${at}`, "text ".repeat(40));
    await pull("--compress", coding, "--file-bytes", "3000");
    expect(storedLines(decode)).toHaveLength(40);
    expect(filesOf().every((file) => file.endsWith(`.ndjson.${coding}`))).toBe(true);
    service.put("r7", "new");
    service.remove("r8");
    await pull("--file-bytes", "3000");
    expect(storedLines(decode)).toHaveLength(39);
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
  });

  it("goes on in the middle of the first pass, and removes what no state names", async () => {
    for (let at = 0; at < 8; at += 1) service.put(`r${at}`, at);
    const records = Array.from({ length: 3 }, (_, at) => ({
      _id: `r${at}`,
      date_created: `2026-10-04T00:00:0${at}.000000+00:00`,
      csat: at,
    }));
    const probe = json(
      { data: [], meta: { next_cursor: "8", end_of_stream: true } },
      { "x-export-watermark": WATERMARK },
    );
    for (const answer of [probe, probe, lines(records, "broken"), error(401, "unauthorized")])
      service.next(answer);
    expect(await pull("--list", "conversations", "--file-bytes", "1")).toMatchObject({ code: 3 });
    expect(storedLines().map(([id]) => id)).toEqual(["r0", "r1", "r2"]);
    expect(await command(["verify", "--to", folder()])).toMatchObject({
      code: 6,
      err: "the copy of conversations is not complete: pull it first\n",
    });
    writeFileSync(join(folder(), "conversations", "00000009.ndjson"), '{"_id":"x"}\n');
    writeFileSync(join(folder(), "conversations", "00000010.ndjson.tmp"), '{"_id":"x');
    writeFileSync(join(folder(), "conversations", "mine.txt"), "");
    expect(await pull("--list", "conversations")).toMatchObject({ code: 0 });
    expect(storedLines().map(([id]) => id)).toEqual(["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"]);
    expect(filesOf()).toContain("mine.txt");
  });

  it("keeps nothing of changes whose stream has no trailer", async () => {
    service.put("a", 1);
    await pull("--list", "conversations");
    service.put("a", 2);
    service.next(lines([{ _id: "a", csat: 2 }], "broken"));
    expect(await pull("--list", "conversations", "--no-compact")).toMatchObject({ code: 0 });
    expect(storedLines()).toEqual([
      ["a", 1],
      ["a", 2],
    ]);
  });

  it("begins again when its cursor has expired", async () => {
    service.put("a", 1);
    await pull("--list", "conversations");
    service.put("b", 1);
    service.remove("a");
    service.next(error(410, "resource_not_found"));
    expect(await pull("--list", "conversations")).toMatchObject({ code: 0 });
    expect(storedLines()).toEqual([["b", 1]]);
  });

  it("keeps the fields that were selected, and what changed since", async () => {
    service.put("a", 1);
    const since = ["--since", "2026-10-04T12:00:00Z", "--list", "conversations"];
    await pull(...since, "--select", "conversations=csat");
    service.put("b", 2);
    await pull("--list", "conversations");
    expect(readFileSync(join(folder(), "conversations/00000001.ndjson"), "utf8")).toBe(
      '{"_id":"b","csat":2}\n',
    );
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
    expect(await pull("--since", "2026-10-01", "--list", "conversations")).toMatchObject({ code: 2 });
    expect(await pull("--select", "conversations=date_created")).toMatchObject({ code: 2 });
  });

  it("is refused while another process writes, and not by a lock of one that died", async () => {
    await pull("--list", "conversations");
    const lock = join(folder(), "pull.lock");
    const { hostname } = await import("node:os");
    writeFileSync(lock, `${process.ppid} ${hostname()}\n`);
    expect(await pull("--list", "conversations")).toMatchObject({
      code: 6,
      err: expect.stringContaining("another process writes into"),
    });
    writeFileSync(lock, `4194304000 ${hostname()}\n`);
    expect(await pull("--list", "conversations")).toMatchObject({ code: 0 });
  });

  it("is refused when a file is missing or the state is another's", async () => {
    service.put("a", 1);
    await pull("--list", "conversations");
    const other = `${service.url}/other`;
    expect(await command(["pull", "--to", folder(), "--url", other])).toMatchObject({ code: 2 });
    rmSync(join(folder(), "conversations/00000001.ndjson"));
    expect(await pull()).toMatchObject({ code: 6, err: expect.stringContaining("is missing") });
  });
});

describe("pull into DuckDB", () => {
  it("keeps one row a record, with typed columns", async () => {
    const file = join(root, "copy.duckdb");
    const to = `duckdb:${file}`;
    service.put("a", { score: 1 });
    service.put("b", null);
    service.put("it's", 1);
    expect(await command(["pull", "--to", to, "--list", "conversations"])).toMatchObject({ code: 0 });
    service.put("a", { score: 2 });
    service.remove("b");
    expect(await command(["pull", "--to", to, "--list", "conversations"])).toMatchObject({ code: 0 });
    expect(await command(["verify", "--to", to])).toMatchObject({ code: 0 });
    const instance = await DuckDBInstance.create(file);
    const connection = await instance.connect();
    const rows = await connection.runAndReadAll(
      "SELECT _id, date_created::VARCHAR, csat::VARCHAR, language FROM conversations ORDER BY _id",
    );
    expect(rows.getRows()).toEqual([
      ["a", "2026-10-04 00:00:00", '{"score":2}', null],
      ["it's", "2026-10-04 00:00:02", "1", null],
    ]);
    connection.closeSync();
    instance.closeSync();
  });
});

describe("pull to standard output", () => {
  it("gives lines, and goes on from the state that it keeps", async () => {
    const args = ["pull", "--to", "-", "--list", "conversations", "--state", join(root, "cursor.json")];
    service.put("a", 1);
    const { out, err } = await command(args);
    expect(out).toBe('{"_id":"a","date_created":"2026-10-04T00:00:00.000000+00:00","csat":1}\n');
    expect(err).toContain("1 records came");
    service.remove("a");
    expect((await command(args)).out).toBe(`{"_id":"a","deleted":true,"deleted_at":"${WATERMARK}"}\n`);
  });
});

describe("verify", () => {
  it("names what is missing, extra and different, but not what has changed since", async () => {
    for (const id of ["a", "b", "c"]) service.put(id, 1);
    await pull("--list", "conversations");
    const file = join(folder(), "conversations/00000001.ndjson");
    const [a = "", b = ""] = readFileSync(file, "utf8").split("\n");
    writeFileSync(file, `${a.replace('"csat":1', '"csat":7')}\n${b.replace('"b"', '"x"')}\n`);
    service.put("c", 2);
    service.tell(FUTURE);
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
    [["push", "--to", "x"], "command: must be one of pull, verify, compact"],
    [["pull", "--to", "x", "--list", "users"], "--list: must be one of"],
    [["pull", "--to", "x", "--compress", "br"], "--compress: must be one of plain, gz, zst"],
    [["pull", "--to", "x", "--since", "yesterday"], "--since: must be an ISO 8601 date"],
    [["pull", "--to", "x", "--select", "csat"], "--select: must be LIST=FIELD,FIELD"],
    [["pull", "--to", "x", "--key", "secret"], "Unknown option '--key'"],
    [["pull", "--to", "-"], "standard output takes the pull of one list"],
    [["pull", "--to", "x", "--file-bytes", "0"], "--file-bytes: must be a number above 0"],
  ])("refuses %j", async (args, said) => {
    const { code, err } = await command(args);
    expect(code).toBe(2);
    expect(err).toContain(said);
  });

  it("needs a key, from the environment or a file", async () => {
    const args = ["pull", "--to", folder(), "--list", "conversations"];
    expect(await command(args, { EXPORT_API_KEY: "" })).toMatchObject({ code: 2 });
    const file = join(root, "key");
    writeFileSync(file, "k\n");
    expect(await command([...args, "--key-file", file], { EXPORT_API_KEY: "" })).toMatchObject({ code: 0 });
    expect(await command(args, { EXPORT_API_KEY: "wrong" })).toMatchObject({ code: 3 });
  });

  it("tells that the service is away", async () => {
    const url = "http://127.0.0.1:1/api";
    const signal = AbortSignal.timeout(300);
    const stderr = new PassThrough();
    const env = { EXPORT_API_KEY: "k" };
    const args = ["pull", "--to", folder(), "--url", url];
    expect(await run(args, { env, stdout: new PassThrough(), stderr, signal })).not.toBe(0);
  });

  it("shows how it is used", async () => {
    expect(await command(["--help"])).toMatchObject({ code: 0, out: expect.stringContaining("usage:") });
  });
});
