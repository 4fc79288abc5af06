import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Answer, error, LINES, raw } from "../http/test-server.fixture.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { inDuckDb } from "./duckdb.fixture.ts";
import { beginFirstPass } from "./service.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const pull = (...args: string[]) => command(["pull", "--to", folder(), ...args]);

const html = (status: number): Answer => raw(status, "text/html", "<html>\nsorry\n</html>\n");

describe("a key", () => {
  it.each([
    "sec\nret",
    "sec\rret",
    "sec ret",
    "s\u00e9cret",
  ])("%j is refused and never printed", async (key) => {
    const { code, out, err } = await command(["pull", "--to", folder()], { EXPORT_API_KEY: key });
    expect(code).toBe(2);
    expect(err).toContain("EXPORT_API_KEY: the key must be one line");
    expect(out + err).not.toMatch(/ret|cret/);
    expect(place.service.server.asked).toEqual([]);
  });

  it("is taken without the newline at its end", async () => {
    expect(await command(["pull", "--to", folder(), ...LIST], { EXPORT_API_KEY: "k\n" })).toMatchObject({
      code: 0,
    });
  });
});

describe("403", () => {
  it("of a list that was pulled before is an error", async () => {
    place.service.put("a", 1);
    await pull(...LIST);
    place.service.next(error(403, "authorization_error"));
    expect(await pull(...LIST)).toMatchObject({ code: 7 });
    place.service.next(error(403, "authorization_error"));
    expect(await pull()).toMatchObject({
      code: 7,
      out: expect.stringContaining("conversations: not pulled"),
    });
  });

  it("of a proxy ends the command", async () => {
    place.service.next(html(403));
    expect(await pull()).toMatchObject({ code: 7, out: "" });
    expect(place.service.server.asked).toHaveLength(1);
  });
});

describe("a page of a proxy with status 200", () => {
  it("never reaches standard output", async () => {
    place.service.put("a", 1);
    const since = ["--since", "2026-10-01T00:00:00Z"];
    for (const args of [[], since]) {
      place.service.next(html(200));
      const { code, out } = await command(["pull", "--to", "-", ...LIST, ...args]);
      expect({ code, out }).toEqual({ code: 3, out: "" });
    }
  });
});

describe("a file of the copy that", () => {
  const spoil = async (coding: string, change: (bytes: Buffer) => Uint8Array | string) => {
    for (let id = 0; id < 100; id += 1) place.service.put(`r${id}`, { text: `${id}`.repeat(id) });
    expect(await pull(...LIST, "--compress", coding)).toMatchObject({ code: 0 });
    const [name = ""] = readdirSync(join(folder(), "conversations"));
    const file = join(folder(), "conversations", name);
    writeFileSync(file, change(readFileSync(file)));
    return file;
  };
  const expectOneLine = async (what: string) => {
    for (const command of ["verify", "compact"]) {
      const { code, err } = await place.command([command, "--to", folder()]);
      expect({ code, lines: err.trimEnd().split("\n").length }, err).toEqual({ code: 6, lines: 1 });
      expect(err).toContain(what);
    }
  };

  it.each(["plain", "gz", "zst"])("was cut, with %s, is named in one line", async (coding) => {
    const whole = await spoil(coding, (bytes) => bytes);
    const bytes = readFileSync(whole);
    for (const length of [bytes.length - 1, bytes.length - 9, bytes.length >> 1, 3]) {
      writeFileSync(whole, bytes.subarray(0, length));
      await expectOneLine(`${whole} is broken: `);
    }
  });

  it.each(["gz", "zst"])("is no %s is named in one line", async (coding) => {
    await expectOneLine(`${await spoil(coding, () => "something else\n")} is broken: `);
  });

  it("has a line that is no record is named with its place", async () => {
    const file = await spoil("plain", (bytes) => `${bytes.toString()}something else\n`);
    await expectOneLine(`${file}: line 101, of 14 characters, is no record`);
  });
});

it.each(["verify", "compact"])("%s makes no copy where there is none", async (name) => {
  for (const to of [folder(), `duckdb:${join(place.root, "typo.duckdb")}`]) {
    expect(await command([name, "--to", to])).toMatchObject({ code: 2 });
  }
  expect(readdirSync(place.root)).toEqual([]);
});

describe("--select", () => {
  it("keeps values as they stand", async () => {
    place.service.put("a", 1);
    const csat = '{"n": 12345678901234567890, "e":[1e400,"\\\\\\"},{"], "t":"\\u00e9"}';
    const line = `{"_id":"a","date_created":"2026-10-04T00:00:00Z","csat":${csat},"language":null}\n`;
    const trailer = '{"trailer":{"count":1,"watermark":null}}\n';
    place.service.next(...beginFirstPass("1"), raw(200, LINES, line + trailer));
    await pull(...LIST, "--select", "conversations=language,csat");
    expect(readFileSync(join(folder(), "conversations/00000001.ndjson"), "utf8")).toBe(
      `{"_id":"a","csat":${csat},"language":null}\n`,
    );
    // The order of names does not matter.
    expect(await pull(...LIST, "--select", "conversations=csat,language")).toMatchObject({
      code: 0,
    });
  });
});

describe("a file of DuckDB", () => {
  const file = (): string => join(place.root, "copy.duckdb");
  const args = (): string[] => ["pull", "--to", `duckdb:${file()}`, ...LIST];

  it("keeps the parts of another command when it cannot be opened", async () => {
    // DuckDB cannot open a folder, as it cannot open a locked file.
    mkdirSync(file());
    mkdirSync(`${file()}.parts`);
    const part = `${file()}.parts/conversations-1.ndjson.tmp`;
    writeFileSync(part, "");
    expect(await command(args())).toMatchObject({ code: 6 });
    expect(existsSync(part)).toBe(true);
  });

  it("is refused when another service is named", async () => {
    await command(args());
    const other = `${place.service.url}/other`;
    const err = expect.stringContaining(`is a copy of ${place.service.url}, not of ${other}`);
    expect(await command([...args(), "--url", other])).toMatchObject({ code: 2, err });
  });

  it("gains the fields that it was made without", async () => {
    place.service.put("a", 1);
    await command(args());
    await inDuckDb(file(), "ALTER TABLE conversations DROP COLUMN language");
    place.service.put("a", 2);
    expect(await command(args())).toMatchObject({ code: 0 });
    expect(await command(["verify", "--to", `duckdb:${file()}`])).toMatchObject({ code: 0 });
    expect(await inDuckDb(file(), "SELECT csat::VARCHAR, language FROM conversations")).toEqual([
      ["2", null],
    ]);
  });
});
