import { Readable } from "node:stream";
import type { PagePosition } from "./page.ts";
import { toWarehouseError, unexpectedAnswer, WarehouseError } from "../session/warehouse-error.ts";

// Marks an exception that ClickHouse appends to a running response. Records are compact JSON, which contains
// no raw carriage return.
const CARRIAGE_RETURN = 13;
/** The last character of each whole answer of records, which hold it as an escape only. */
export const END_MARK = "\u0003";
const END = 3;
const NEWLINE = 10;
const MAX_HEAD_BYTES = 1 << 20;

export type PageHead = {
  readonly rows: number;
  /** The query has found records of the next page. */
  readonly keysBehind: boolean;
  readonly last: PagePosition;
  readonly lastIsWhole: boolean;
  /** Rows up to the end of the page, superseded ones included. */
  readonly needed: number;
};

export type HeadAndRecords<H> = { readonly head: H; readonly records: Readable };

/** Parses the head line of a page of a window. @throws WarehouseError when it is none */
export function parsePageHead(line: string): PageHead {
  const [, rows, keysBehind, date, whole, id, needed] =
    /^(\d+) ([01]) (\d+) ([01]) ([\dA-F]*) (\d+)$/.exec(line) ?? [];
  if (needed === undefined) throw unexpectedAnswer();
  return {
    rows: Number(rows),
    keysBehind: keysBehind === "1",
    last: { date: Number(date), id: fromHex(id) },
    lastIsWhole: whole === "1",
    needed: Number(needed),
  };
}

/** `next`: id of the first record of the next page; null: there is none. */
export type EndUserHead = { readonly rows: number; readonly next: string | null };

/** Parses the head line of a page of end users. @throws WarehouseError when it is none */
export function parseEndUserHead(line: string): EndUserHead {
  const [, rows, more, next] = /^(\d+) ([01]) ([\dA-F]*)$/.exec(line) ?? [];
  if (next === undefined) throw unexpectedAnswer();
  return { rows: Number(rows), next: more === "1" ? fromHex(next) : null };
}

function fromHex(text: string | undefined): string {
  return Buffer.from(text ?? "", "hex").toString();
}

function brokenMidway(): WarehouseError {
  return new WarehouseError("warehouse_unavailable", "EXCEPTION_MIDWAY", true, undefined);
}

/** What waits for a reader costs memory and time of the collector; sockets hold more than this anyway. */
const WAITING_BYTES = 256 * 1024;

/**
 * Creates the stream that chunks of `source` are pushed to. Reading resumes `source`, destroying destroys it.
 */
function readableBehind(source: Readable): Readable {
  const readable = new Readable({
    highWaterMark: WAITING_BYTES,
    read() {
      source.resume();
    },
    destroy(error, done) {
      source.destroy();
      done(error);
    },
  });
  // Readers still get the error. Without this listener, an error before the first read would end the process.
  return readable.on("error", () => {});
}

/** What passes of a chunk; null: the answer is broken. */
type PassChunk = (chunk: Buffer) => Buffer | null;

/** Passes chunks without the mark of the end. */
const createUnmark = (): { readonly unmark: PassChunk; readonly isWhole: () => boolean } => {
  let ended = false;
  return {
    unmark: (chunk) => {
      if (ended || chunk.indexOf(CARRIAGE_RETURN) !== -1) return null;
      const mark = chunk.indexOf(END);
      if (mark === -1) return chunk;
      ended = true;
      return mark === chunk.length - 1 ? chunk.subarray(0, -1) : null;
    },
    isWhole: () => ended,
  };
};

/** @param isWhole whether the end is that of a whole answer */
const pass = (source: Readable, passChunk: PassChunk, isWhole: () => boolean): Readable => {
  const passed = readableBehind(source);
  source.on("data", (chunk: Buffer) => {
    const passing = passChunk(chunk);
    if (passing === null) passed.destroy(brokenMidway());
    // To push nothing would stop a stream that is waited for.
    else if (passing.length > 0 && !passed.push(passing)) source.pause();
  });
  source.on("end", () => {
    if (isWhole()) passed.push(null);
    else passed.destroy(brokenMidway());
  });
  source.on("error", (error) => passed.destroy(toWarehouseError(error)));
  source.on("close", () => {
    if (!source.readableEnded) passed.destroy(brokenMidway());
  });
  return passed;
};

/** Streams a response of lines. Fails, and never ends cleanly, when ClickHouse fails midway or without the mark. */
export const passLines = (source: Readable): Readable => {
  const { unmark, isWhole } = createUnmark();
  return pass(source, unmark, isWhole);
};

/**
 * Streams a response in a binary format that ends with `mark`. Fails, and never ends cleanly, when ClickHouse
 * fails midway: it may then end with the exception.
 */
export const passBytes = (source: Readable, mark: Buffer): Readable => {
  let last: Buffer = Buffer.alloc(0);
  const keep = (chunk: Buffer): Buffer => {
    last = (chunk.length < mark.length ? Buffer.concat([last, chunk]) : chunk).subarray(-mark.length);
    return chunk;
  };
  return pass(source, keep, () => last.equals(mark));
};

/**
 * Splits the response of a page query into its head line, parsed by `parse`, and the stream of the records. The
 * stream fails, and never ends cleanly, when ClickHouse fails midway, the connection breaks or the mark is missing.
 *
 * @throws WarehouseError when ClickHouse fails before the head line is complete, or it is missing or cannot be parsed
 */
export function splitHead<H>(source: Readable, parse: (line: string) => H): Promise<HeadAndRecords<H>> {
  return new Promise((resolve, reject) => {
    let settled = false;
    let pending: Buffer = Buffer.alloc(0);
    const records = readableBehind(source);
    const { unmark, isWhole } = createUnmark();

    function fail(cause: Error): void {
      const error = toWarehouseError(cause);
      if (settled) {
        records.destroy(error);
        return;
      }
      settled = true;
      records.destroy();
      reject(error);
    }

    function passOn(chunk: Buffer): void {
      if (chunk.length > 0 && !records.push(chunk)) source.pause();
    }

    source.on("data", (given: Buffer) => {
      const chunk = unmark(given);
      if (chunk === null) return fail(brokenMidway());
      if (settled) return passOn(chunk);
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const end = pending.indexOf(NEWLINE);
      if (end === -1) {
        if (pending.length > MAX_HEAD_BYTES) fail(brokenMidway());
        return;
      }
      let head: H;
      try {
        head = parse(pending.toString("latin1", 0, end));
      } catch (error) {
        return fail(error as Error);
      }
      settled = true;
      source.pause();
      passOn(pending.subarray(end + 1));
      resolve({ head, records });
    });
    source.on("end", () => {
      if (!isWhole()) return fail(brokenMidway());
      // A page without records has a head line too.
      if (!settled) return fail(unexpectedAnswer());
      records.push(null);
    });
    source.on("error", fail);
    source.on("close", () => {
      if (!source.readableEnded) fail(brokenMidway());
    });
  });
}
