import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import {
  END_MARK,
  parseEndUserHead,
  parsePageHead,
  passBytes,
  passLines,
  splitHead as splitAnyHead,
} from "./page-stream.ts";
import { WarehouseError } from "../session/warehouse-error.ts";

const splitHead = (source: Readable) => splitAnyHead(source, parsePageHead);
const HEAD = `2 1 1791072000000001 0 ${Buffer.from("ï d").toString("hex").toUpperCase()} 3`;
const PARSED = {
  rows: 2,
  keysBehind: true,
  last: { date: 1_791_072_000_000_001, id: "ï d" },
  lastIsWhole: false,
  needed: 3,
};
const RECORDS = '{"_id":"a","text":"é 😀 \\r\\n"},{"_id":"ï d"}';

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
        expect(await textOf(open(lines + END_MARK, at))).toBe(lines);
      }),
    );
    expect(await textOf(open(END_MARK, []))).toBe("");
  });

  it.each([
    "",
    lines,
    `${lines}${END_MARK}x`,
    `${lines}${END_MARK}${END_MARK}`,
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

describe("splitHead", () => {
  it("takes the head off and passes the rest on, however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 500 }), { maxLength: 12 }), async (cuts) => {
        const { head, records } = await splitHead(
          Readable.from(chunked(`${HEAD}\n${RECORDS}${END_MARK}`, cuts), { objectMode: false }),
        );
        expect(head).toEqual(PARSED);
        expect(await textOf(records)).toBe(RECORDS);
      }),
    );
  });

  it("gives no records for nothing but the head and the mark of the end", async () => {
    const { records } = await splitHead(Readable.from([`0 0 0 1  0\n${END_MARK}`], { objectMode: false }));
    expect(await textOf(records)).toBe("");
  });

  it("reads a long id", async () => {
    const id = "é".repeat(30_000);
    const line = `1 0 5 1 ${Buffer.from(id).toString("hex").toUpperCase()} 1\n{}${END_MARK}`;
    const { head } = await splitHead(
      Readable.from(chunked(line, [1000, 20_000, 60_000]), { objectMode: false }),
    );
    expect(head?.last.id).toBe(id);
  });

  it("fails for an exception behind the records, however the bytes are cut", async () => {
    const exception =
      "\r\n__exception__\r\nTAG\r\nCode: 395. DB::Exception: x\r\n28 TAG\r\n__exception__\r\n";
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 500 }), { maxLength: 8 }), async (cuts) => {
        const source = Readable.from(chunked(`${HEAD}\n${RECORDS}${exception}`, cuts), { objectMode: false });
        const outcome = await splitHead(source)
          .then(({ records }) => textOf(records))
          .catch((error: unknown) => error);
        expect(outcome).toBeInstanceOf(WarehouseError);
        expect(outcome).toMatchObject({ code: "warehouse_unavailable", retryable: true });
        expect(source.destroyed).toBe(true);
      }),
    );
  });

  it.each([
    ["an exception instead of the head", (source: PassThrough) => source.end("\r\n__exception__\r\n")],
    ["an end within the head", (source: PassThrough) => source.end(HEAD)],
    ["nothing at all", (source: PassThrough) => source.end()],
    ["nothing but the mark of the end", (source: PassThrough) => source.end(END_MARK)],
    ["records without a head", (source: PassThrough) => source.end(`{}\n${END_MARK}`)],
    ["a head without numbers", (source: PassThrough) => source.end(`2 1 nan 0  3\n{}${END_MARK}`)],
    ["a head of null values", (source: PassThrough) => source.end(`\\N 1 5 0  \\N\n{}${END_MARK}`)],
    ["a head of another list", (source: PassThrough) => source.end(`2 1 \n{}${END_MARK}`)],
    ["an error before the head", (source: PassThrough) => source.destroy(new Error("reset"))],
    ["a close before the head", (source: PassThrough) => source.destroy()],
    ["a head without end", (source: PassThrough) => source.end(Buffer.alloc(2 << 20, 97))],
  ])("rejects once, and no more than that: %s", async (_, breakOff) => {
    const source = new PassThrough();
    const splitting = splitHead(source);
    breakOff(source);
    await expect(splitting).rejects.toBeInstanceOf(WarehouseError);
    await nextTurns();
    expect(source.destroyed).toBe(true);
  });

  it("ends with an error when the mark of the end is missing behind the records", async () => {
    const { records } = await splitHead(Readable.from([`${HEAD}\n${RECORDS}`], { objectMode: false }));
    await expect(textOf(records)).rejects.toBeInstanceOf(WarehouseError);
  });

  it.each([
    ["an error", (source: PassThrough) => source.destroy(new Error("reset"))],
    ["a close", (source: PassThrough) => source.destroy()],
  ])("keeps %s that comes before anybody reads for the one who reads then", async (_, breakOff) => {
    const source = new PassThrough();
    source.write(`${HEAD}\n{}`);
    const { records } = await splitHead(source);
    breakOff(source);
    await nextTurns();
    await expect(textOf(records)).rejects.toBeInstanceOf(WarehouseError);
  });

  it("destroys the source with the records", async () => {
    const source = new PassThrough();
    source.write(`${HEAD}\n{}`);
    const { records } = await splitHead(source);
    records.destroy();
    await once(source, "close");
    await nextTurns();
    expect(source.errored).toBeNull();
  });

  it("stops the source while nobody reads", async () => {
    let produced = 0;
    const source = new Readable({
      read() {
        produced += 1;
        this.push(produced === 1 ? `${HEAD}\n` : Buffer.alloc(64 * 1024, 97));
        if (produced > 10_000) {
          this.push(END_MARK);
          this.push(null);
        }
      },
    });
    const { records } = await splitHead(source);
    await nextTurns();
    expect(produced).toBeLessThan(20);
    let size = 0;
    for await (const chunk of records) {
      size += (chunk as Buffer).length;
      if (size > 5_000_000) break;
    }
    expect(produced).toBeLessThan(size / (64 * 1024) + 20);
    expect(source.destroyed).toBe(true);
  });
});

test.each([
  ["the last page", "3 0 ", { rows: 3, next: null }],
  [
    "a page before an id with spaces",
    `1 1 ${Buffer.from(" é ").toString("hex").toUpperCase()}`,
    { rows: 1, next: " é " },
  ],
  ["a page before an empty id", "1 1 ", { rows: 1, next: "" }],
])("the head of end users: %s", (_, line, head) => {
  expect(parseEndUserHead(line)).toEqual(head);
});
