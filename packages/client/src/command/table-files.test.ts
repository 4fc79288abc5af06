import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { error, raw } from "../http/test-server.fixture.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { inDuckDb } from "./duckdb.fixture.ts";
import { beginFirstPass, WATERMARK } from "./service.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const pull = (format: string, ...args: string[]) =>
  command(["pull", "--to", `${format}:${folder()}`, ...LIST, ...args]);
const verify = (format: string) => command(["verify", "--to", `${format}:${folder()}`, ...LIST]);
const fileOf = (format: string): string => join(folder(), `conversations.${format}`);

const query = (sql: string): Promise<unknown[][]> => inDuckDb(":memory:", sql);
const give = (record: string): void => {
  const page = `{"data":[${record}],"meta":{"next_cursor":"1","end_of_stream":true}}`;
  place.service.next(raw(200, "application/json", page, { "x-export-watermark": WATERMARK }));
};
const ids = async (format: string): Promise<unknown[]> =>
  (await query(`SELECT _id FROM '${fileOf(format)}' ORDER BY _id`)).map(([id]) => id);

describe.each(["parquet", "csv"])("pull into %s files", (format) => {
  it("keeps one row a record, and nothing else beside the files", async () => {
    for (const id of ["b", "a", "c"]) place.service.put(id, { score: id });
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual(["a", "b", "c"]);
    place.service.put("b", { score: "new" });
    place.service.remove("a");
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await query(`SELECT _id, csat FROM '${fileOf(format)}' ORDER BY _id`)).toEqual([
      ["b", '{"score":"new"}'],
      ["c", '{"score":"c"}'],
    ]);
    expect(await verify(format)).toMatchObject({ code: 0, out: expect.stringContaining("equal, 2 records") });
    expect(readdirSync(folder()).toSorted()).toEqual([`conversations.${format}`, "pull.duckdb"]);
  });

  it("writes no file when nothing changed, also when records come again as they are", async () => {
    place.service.put("a", 1);
    await pull(format);
    const { ino, mtimeMs } = statSync(fileOf(format));
    expect(await pull(format)).toMatchObject({ code: 0 });
    place.service.put("a", 1);
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(statSync(fileOf(format))).toMatchObject({ ino, mtimeMs });
  });

  it("takes a number that only its text tells from the old one", async () => {
    place.service.put("a", 1);
    await pull(format);
    for (const csat of [
      '{"n":12345678901234567891}',
      '{"n":12345678901234567892}',
      '{"n":1.10}',
      '{"n":1.1}',
    ]) {
      give(`{"_id":"a","csat":${csat}}`);
      expect(await pull(format)).toMatchObject({ code: 0 });
      expect(await query(`SELECT csat FROM '${fileOf(format)}'`)).toEqual([[csat]]);
    }
  });

  it("keeps the meaning of characters that stand as escapes in lines", async () => {
    place.service.put("a", 1);
    await pull(format);
    const escapes = String.raw`\u2028 \u2029 \u0085 \u0000 \ufeff \u001e \r\n \u000b \ufffd`;
    const text = JSON.parse(`"${escapes}"`) as string;
    give(`{"_id":"a${escapes}","language":"${escapes}","csat":{"${escapes}":"${escapes}"}}`);
    expect(await pull(format)).toMatchObject({ code: 0 });
    const [, row] = await query(`SELECT _id, language, csat FROM '${fileOf(format)}' ORDER BY length(_id)`);
    expect(row?.slice(0, 2)).toEqual([`a${text}`, text]);
    expect(JSON.parse(String(row?.[2]))).toEqual({ [text]: text });
  });

  it("writes a file without rows for an empty list, and one again that is gone or was cut", async () => {
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual([]);
    expect(await verify(format)).toMatchObject({ code: 0 });
    place.service.put("a", 1);
    await pull(format);
    rmSync(fileOf(format));
    expect(await verify(format)).toMatchObject({ code: 6, err: expect.stringContaining("is missing") });
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual(["a"]);
    writeFileSync(fileOf(format), "cut");
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual(["a"]);
  });

  it("keeps the old file when it cannot write, and catches up when nothing changed since", async () => {
    place.service.put("a", 1);
    await pull(format);
    const old = readFileSync(fileOf(format));
    rmSync(fileOf(format));
    mkdirSync(join(fileOf(format), "in the way"), { recursive: true });
    place.service.put("b", 2);
    // The lists after it are still pulled.
    expect(await command(["pull", "--to", `${format}:${folder()}`])).toMatchObject({
      code: 1,
      out: expect.stringMatching(/conversations: its file could not be written[^]*messages: not pulled/),
      err: expect.stringContaining(fileOf(format)),
    });
    expect(await verify(format)).toMatchObject({
      code: 6,
      err: expect.stringContaining("older than the copy"),
    });
    rmSync(fileOf(format), { recursive: true });
    writeFileSync(fileOf(format), old);
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual(["a", "b"]);
  });

  it("is seen by verify when its bytes change", async () => {
    place.service.put("a", 1);
    await pull(format);
    const bytes = readFileSync(fileOf(format));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    writeFileSync(fileOf(format), bytes);
    expect(await verify(format)).toMatchObject({
      code: 6,
      err: expect.stringContaining("not what was written"),
    });
  });

  it("has large records too, and replaces and removes them", async () => {
    const large = (text: string) => ({ text: text.repeat(40_000) });
    place.service.put("large", large("é"));
    place.service.put("small", 1);
    place.service.put("other", large("x"));
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual(["large", "other", "small"]);
    expect(await verify(format)).toMatchObject({ code: 0 });
    place.service.put("large", 2);
    place.service.put("small", large("y"));
    place.service.remove("other");
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(
      await query(
        `SELECT _id, csat = '{"text":"' || repeat('y', 40000) || '"}' FROM '${fileOf(format)}' ORDER BY _id`,
      ),
    ).toEqual([
      ["large", false],
      ["small", true],
    ]);
    expect(await verify(format)).toMatchObject({ code: 0 });
  });

  it("has the records' own values in a folder that is named like a partition", async () => {
    place.service.put("a", "x".repeat(20_000));
    place.service.put("b", 1);
    const within = join(folder(), "_id=other", "year=2024");
    const to = `${format}:${within}`;
    expect(await command(["pull", "--to", to, ...LIST])).toMatchObject({ code: 0 });
    const source = `read_${format}('${within}/conversations.${format}', hive_partitioning = false)`;
    expect(await query(`SELECT _id FROM ${source} ORDER BY _id`)).toEqual([["a"], ["b"]]);
    const columns = (await query(`DESCRIBE FROM ${source}`)).map(([name]) => name);
    expect(columns).not.toContain("year");
    expect(await command(["verify", "--to", to, ...LIST])).toMatchObject({ code: 0 });
  });

  it("is made afresh when its cursor has expired", async () => {
    place.service.put("a", 1);
    await pull(format);
    place.service.put("b", 1);
    place.service.remove("a");
    place.service.next(error(410, "resource_not_found"));
    expect(await pull(format)).toMatchObject({ code: 0 });
    expect(await ids(format)).toEqual(["b"]);
    expect(await verify(format)).toMatchObject({ code: 0 });
  });

  it("that is being made afresh is reported as not complete", async () => {
    place.service.put("a", 1);
    await pull(format);
    rmSync(fileOf(format));
    place.service.next(error(410, "resource_not_found"), ...beginFirstPass(), error(401, "unauthorized"));
    expect(await pull(format)).toMatchObject({ code: 3 });
    expect(await verify(format)).toMatchObject({ code: 6, err: expect.stringContaining("is not complete") });
  });

  it("has the fields that were selected, of records since", async () => {
    place.service.put("a", 1);
    const args = ["--since", "2026-10-04T12:00:00Z", "--select", "conversations=csat"];
    expect(await pull(format, ...args)).toMatchObject({ code: 0 });
    place.service.put("b", 2);
    expect(await pull(format, ...args)).toMatchObject({ code: 0 });
    expect(await query(`SELECT column_name FROM (DESCRIBE SELECT * FROM '${fileOf(format)}')`)).toEqual([
      ["_id"],
      ["csat"],
    ]);
    expect(await ids(format)).toEqual(["b"]);
    expect(await verify(format)).toMatchObject({ code: 0 });
  });
});

it("CSV tells an empty text from null, quotes texts, and keeps numbers as they stand", async () => {
  place.service.put('=1+1,"x"\n', { n: 1 });
  await pull("csv", "--select", "conversations=csat,language,date_created");
  expect(readFileSync(fileOf("csv"), "utf8")).toBe(
    '"_id",csat,date_created,"language"\n"=1+1,""x""\n","{""n"":1}",2026-10-04T00:00:00.000000+00:00,\n',
  );
});

describe("a folder", () => {
  it("of something else is refused", async () => {
    mkdirSync(folder());
    writeFileSync(join(folder(), "mine.txt"), "");
    expect(await pull("csv")).toMatchObject({
      code: 2,
      err: expect.stringContaining("not empty: it has mine.txt"),
    });
    expect(readdirSync(folder())).toEqual(["mine.txt"]);
  });

  it("of another kind of copy is refused", async () => {
    await pull("parquet");
    for (const to of [`csv:${folder()}`, folder(), `duckdb:${join(folder(), "pull.duckdb")}`])
      expect(await command(["pull", "--to", to, ...LIST]), to).toMatchObject({ code: 2 });
    expect(await pull("parquet")).toMatchObject({ code: 0 });
    const lines = join(place.root, "lines");
    await command(["pull", "--to", lines, ...LIST]);
    expect(await command(["pull", "--to", `parquet:${lines}`, ...LIST])).toMatchObject({ code: 2 });
    expect(await command(["pull", "--to", "parquet:", ...LIST])).toMatchObject({ code: 2 });
    expect(await pull("parquet", "--compress", "gz")).toMatchObject({ code: 2 });
  });

  it("whose making was killed is made all the same", async () => {
    mkdirSync(folder());
    const half = join(folder(), `pull.duckdb.new-${randomUUID()}`);
    writeFileSync(half, "half");
    expect(await pull("parquet")).toMatchObject({ code: 0 });
    expect(existsSync(half)).toBe(false);
  });

  it("without a copy is not verified", async () => {
    expect(await verify("parquet")).toMatchObject({ code: 2 });
    expect(existsSync(folder())).toBe(false);
  });
});
