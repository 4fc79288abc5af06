import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MARK, openPage, passBytes, passLines, type RowsEnd } from "./page-stream.ts";
import { WarehouseError } from "../session/warehouse-error.ts";

function chunked(text: string, cuts: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends
    .map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
    .filter((chunk) => chunk.length > 0);
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
beforeEach(() => void process.on("uncaughtExceptionMonitor", note));
afterEach(() => {
  process.off("uncaughtExceptionMonitor", note);
  expect(unhandled).toEqual([]);
});

const nextTurns = async (): Promise<void> => {
  for (let turns = 5; turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
};

describe("passLines", () => {
  const lines = '{"_id":"a","text":"é 😀 \\r\\n"}\n{"_id":"ï d"}\n';
  const cuts = fc.array(fc.nat({ max: 500 }), { maxLength: 8 });
  const open = (text: string, at: readonly number[]): Readable =>
    passLines(Readable.from(chunked(text, at), { objectMode: false }));

  it("passes lines as they stand, without the mark of the end, however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        expect(await textOf(open(lines + MARK, at))).toBe(lines);
      }),
    );
    expect(await textOf(open(MARK, []))).toBe("");
  });

  it.each([
    "",
    lines,
    `${lines}${MARK}x`,
    `${lines}${MARK}${MARK}`,
  ])("fails without the mark at the end: %j", async (answer) => {
    await expect(textOf(open(answer, [30, 60]))).rejects.toBeInstanceOf(WarehouseError);
  });

  it("fails for an exception behind whole lines, however the bytes are cut", async () => {
    const broken = `${lines}\r\n__exception__\r\nTAG\r\nCode: 395. DB::Exception: x\r\n28 TAG\r\n__exception__\r\n`;
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        await expect(textOf(open(broken, at))).rejects.toMatchObject({ causeName: "EXCEPTION_MIDWAY" });
      }),
    );
  });
});

describe("passBytes", () => {
  const mark = Buffer.from("PAR1");
  const open = (text: string, cuts: readonly number[]): Readable =>
    passBytes(Readable.from(chunked(text, cuts), { objectMode: false }), mark);

  it("passes an answer that ends with its mark, however the bytes are cut", async () => {
    const whole = "PAR1 data \r\n PAR1";
    const cuts = fc.array(fc.nat({ max: 30 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        expect(await textOf(open(whole, at))).toBe(whole);
      }),
    );
  });

  it.each([
    "",
    "PAR",
    "PAR1 data",
    "PAR1 data PAR1\r\n__exception__ Code: 241",
  ])("fails when the answer ends otherwise: %j", async (text) => {
    await expect(textOf(open(text, [2, 5]))).rejects.toMatchObject({ causeName: "EXCEPTION_MIDWAY" });
  });
});

type Row = readonly [date: number, id: string];
const recordOf = (id: string): string => `{"_id":${JSON.stringify(id)},"text":"é 😀"}`;

const keyOf = (date: number, id: string): string =>
  `${MARK}${date} ${Buffer.from(id).toString("hex").toUpperCase()}${MARK}`;

const answerOf = (rows: readonly Row[], size: number): string => {
  const found = rows.slice(0, size + 1).map(([date, id], index) => {
    return recordOf(id) + (index + 1 >= size ? keyOf(date, id) : "");
  });
  return `${found.join(",")}${MARK}${found.length}\n`;
};
const SIZE = 3;
const ROWS: readonly Row[] = [
  [5, "ï d"],
  [5, "b"],
  [7, "c\n\u0000"],
  [7, "d"],
];
const ANSWER = answerOf(ROWS, SIZE);
const RECORDS = ROWS.slice(0, SIZE)
  .map(([, id]) => recordOf(id))
  .join(",");

const readRows = async (answer: Readable, size = SIZE): Promise<{ records: string; end: RowsEnd }> => {
  const { records, end } = await openPage(answer, size, (rows) => rows);
  expect(end).toBeInstanceOf(Function);
  return { records: await textOf(records), end: end() };
};
const bytes = (text: string, cuts: readonly number[] = []): Readable =>
  Readable.from(chunked(text, cuts), { objectMode: false });

describe("a page", () => {
  const anyCuts = fc.array(fc.nat({ max: 500 }), { maxLength: 12 });

  it("is the records up to its size, and knows where it ended, however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(anyCuts, async (cuts) => {
        expect(await readRows(bytes(ANSWER, cuts))).toEqual({
          records: RECORDS,
          end: { rows: 3, last: { date: 7, id: "c\n\u0000" }, behind: { date: 7, id: "d" } },
        });
      }),
    );
  });

  it("has all records where there are no more than its size, and may be empty", async () => {
    expect((await readRows(bytes(answerOf(ROWS, 4)), 4)).end).toEqual({
      rows: 4,
      last: { date: 7, id: "d" },
      behind: undefined,
    });
    expect((await readRows(bytes(answerOf(ROWS, 5)), 5)).end).toMatchObject({ rows: 4, last: undefined });
    expect(await readRows(bytes(answerOf([], 3)))).toMatchObject({ records: "", end: { rows: 0 } });
  });

  it("says how it ended when its records have, and not before", async () => {
    const long = "x".repeat(3 * 1024 * 1024);
    const { records, end } = await openPage(bytes(`${long}${MARK}1\n`), SIZE, ({ rows }) =>
      Promise.resolve(rows),
    );
    expect(end).toThrow(WarehouseError);
    expect(await textOf(records)).toBe(long);
    expect(end()).toBe(1);
  });

  it("fails for an exception behind the records, however the bytes are cut", async () => {
    const exception =
      "\r\n__exception__\r\nTAG\r\nCode: 395. DB::Exception: x\r\n28 TAG\r\n__exception__\r\n";
    await fc.assert(
      fc.asyncProperty(anyCuts, async (cuts) => {
        const source = bytes(RECORDS + exception, cuts);
        await expect(readRows(source)).rejects.toMatchObject({
          code: "warehouse_unavailable",
          retryable: true,
          causeName: "EXCEPTION_MIDWAY",
        });
        expect(source.destroyed).toBe(true);
      }),
    );
  });

  it.each([
    ["nothing at all", ""],
    ["records without an end", RECORDS],
    ["an end without a number", `${RECORDS}${MARK}`],
    ["an end that is cut off", ANSWER.slice(0, -1)],
    ["more behind the end", `${ANSWER}1\n`],
    ["an end without its rows", `${MARK}4\n`],
    ["fewer rows than were counted", ANSWER.replace(`${MARK}4`, `${MARK}5`)],
    ["more rows than were counted", ANSWER.replace(`${MARK}4`, `${MARK}2`)],
    ["a full page without the row behind", ANSWER.replace(`,${recordOf("d")}${keyOf(7, "d")}`, "")],
    ["a full page without the key of its end", ANSWER.replace(keyOf(7, "c\n\u0000"), "")],
    ["a key that is none", `{},{},{}${MARK}nan 61${MARK}${MARK}3\n`],
    ["a key that is cut off", `{},{},{}${MARK}5 61`],
  ])("never ends cleanly with %s", async (_, answer) => {
    await expect(readRows(bytes(answer))).rejects.toBeInstanceOf(WarehouseError);
  });

  it.each([
    ["an error", (source: PassThrough) => source.destroy(new Error("reset"))],
    ["a close", (source: PassThrough) => source.destroy()],
  ])("is refused for %s that comes before it begins", async (_, breakOff) => {
    const source = new PassThrough();
    source.write("{}");
    const page = openPage(source, SIZE, (rows) => rows);
    await nextTurns();
    breakOff(source);
    await expect(page).rejects.toBeInstanceOf(WarehouseError);
  });

  it("keeps an error that comes before anybody reads for the one who reads then", async () => {
    const source = new PassThrough();
    source.write("x".repeat(3 * 1024 * 1024));
    const { records } = await openPage(source, SIZE, (rows) => rows);
    source.destroy(new Error("reset"));
    await nextTurns();
    await expect(textOf(records)).rejects.toBeInstanceOf(WarehouseError);
  });

  it("fails when what lies behind it cannot be found out", async () => {
    const away = new WarehouseError("warehouse_unavailable", "ECONNREFUSED", true, undefined);
    await expect(openPage(bytes(ANSWER), SIZE, () => Promise.reject(away))).rejects.toBe(away);
  });

  it("destroys the answer with the records", async () => {
    const source = new PassThrough();
    source.write("x".repeat(3 * 1024 * 1024));
    const { records } = await openPage(source, SIZE, (rows) => rows);
    records.destroy();
    await once(source, "close");
    expect(source.destroyed).toBe(true);
  });

  it("stops the answer while nobody reads", async () => {
    let produced = 0;
    const source = new Readable({
      read() {
        produced += 1;
        this.push(Buffer.alloc(64 * 1024, 97));
      },
    });
    const { records } = await openPage(source, SIZE, (rows) => rows);
    await nextTurns();
    expect(produced).toBeLessThan(60);
    let size = 0;
    for await (const chunk of records) {
      size += (chunk as Buffer).length;
      if (size > 5_000_000) break;
    }
    expect(produced).toBeLessThan(size / (64 * 1024) + 60);
    await once(source, "close");
  });
});
