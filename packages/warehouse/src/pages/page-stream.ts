import { addAbortSignal, Readable } from "node:stream";
import type { PagePosition, Streamed } from "./page.ts";
import { toWarehouseError, unexpectedAnswer, WarehouseError } from "../session/warehouse-error.ts";

// Marks an exception that ClickHouse appends to a running response. Records are compact JSON, which contains
// no raw carriage return.
const CARRIAGE_RETURN = 13;
/** Around the keys of rows and behind the last one, in each whole answer. Records hold it as an escape only. */
export const MARK = "\u0003";
const MARK_BYTE = 3;

function brokenMidway(): WarehouseError {
  return new WarehouseError("warehouse_unavailable", "EXCEPTION_MIDWAY", true, undefined);
}

/** What waits for a reader costs memory and time of the collector; sockets hold more than this anyway. */
const WAITING_BYTES = 256 * 1024;
/** So much of a page is read before it begins: a shorter answer is known to its end by then. */
const PAGE_BYTES = 2 * 1024 * 1024;

const NOTHING = Buffer.alloc(0);

/** What passes of a chunk; null: the answer is broken. */
type PassChunk = (chunk: Buffer) => Buffer | null;

/** @param finish called at the end of the answer, before that of the stream; throws when it is not whole */
const pass = (
  source: Readable,
  passChunk: PassChunk,
  finish: () => void | Promise<void>,
  highWaterMark = WAITING_BYTES,
): Readable => {
  const passed = new Readable({
    highWaterMark,
    read() {
      source.resume();
    },
    destroy(error, done) {
      source.destroy();
      done(error);
    },
  });
  const fail = (error: unknown): void => void passed.destroy(toWarehouseError(error));
  // Readers still get the error. Without this listener, an error before the first read would end the process.
  passed.on("error", () => {});
  source.on("data", (chunk: Buffer) => {
    const passing = passChunk(chunk);
    if (passing === null) fail(brokenMidway());
    // To push nothing would stop a stream that is waited for.
    else if (passing.length > 0 && !passed.push(passing)) source.pause();
  });
  source.on("end", () => {
    void Promise.resolve()
      .then(finish)
      .then(() => passed.push(null), fail);
  });
  source.on("error", fail);
  source.on("close", () => {
    if (!source.readableEnded) fail(brokenMidway());
  });
  return passed;
};

/** Streams a response of lines. Fails, and never ends cleanly, when ClickHouse fails midway or without the mark. */
export const passLines = (source: Readable): Readable => {
  let ended = false;
  const unmark: PassChunk = (chunk) => {
    if (ended || chunk.indexOf(CARRIAGE_RETURN) !== -1) return null;
    const mark = chunk.indexOf(MARK_BYTE);
    if (mark === -1) return chunk;
    ended = true;
    return mark === chunk.length - 1 ? chunk.subarray(0, -1) : null;
  };
  return pass(source, unmark, () => {
    if (!ended) throw brokenMidway();
  });
};

/** Streams a binary response that ends with `mark`; never ends cleanly when ClickHouse fails midway. */
export const passBytes = (source: Readable, mark: Buffer): Readable => {
  let last: Buffer = NOTHING;
  const keep: PassChunk = (chunk) => {
    last = (chunk.length < mark.length ? Buffer.concat([last, chunk]) : chunk).subarray(-mark.length);
    return chunk;
  };
  return pass(source, keep, () => {
    if (!last.equals(mark)) throw brokenMidway();
  });
};

export type RowsEnd = {
  readonly rows: number;
  /** The last record of a full page. */
  readonly last: PagePosition | undefined;
  /** The record behind the page. */
  readonly behind: PagePosition | undefined;
};

/** Reads the key of a row. @throws WarehouseError when it is none */
const readKey = (text: string | undefined): PagePosition => {
  const [, date, id] = /^(\d+) ([\dA-F]*)$/.exec(text ?? "") ?? [];
  if (id === undefined) throw unexpectedAnswer();
  return { date: Number(date), id: Buffer.from(id, "hex").toString() };
};

/**
 * Reads the end of an answer: the keys of the last record and of the one behind it, and the number of rows.
 */
const readEnd = (tail: string, size: number): RowsEnd => {
  const parts = tail.split(MARK);
  const count = parts.pop() ?? "";
  if (!/^\d+\n$/.test(count)) throw brokenMidway();
  const rows = Number(count);
  // A row has two marks.
  const keys = parts.length / 2;
  if (keys !== Math.max(0, rows + 1 - size)) throw unexpectedAnswer();
  return {
    rows: Math.min(rows, size),
    last: keys > 0 ? readKey(parts[0]) : undefined,
    behind: keys > 1 ? readKey(parts[2]) : undefined,
  };
};

/**
 * Streams the records of an answer in the form of `pageRows`; never ends cleanly when ClickHouse fails
 * midway.
 * @param endOf called at the end of the answer, before that of the stream
 * @param signal destroys the answer
 * @throws WarehouseError when the answer breaks before
 */
export const openPage = async <End>(
  source: Readable,
  size: number,
  endOf: (end: RowsEnd) => End | Promise<End>,
  signal?: AbortSignal,
): Promise<Streamed<End>> => {
  let tail: Buffer[] | undefined;
  const takeRecords: PassChunk = (chunk) => {
    if (chunk.indexOf(CARRIAGE_RETURN) !== -1) return null;
    if (tail !== undefined) {
      tail.push(chunk);
      return NOTHING;
    }
    const mark = chunk.indexOf(MARK_BYTE);
    if (mark === -1) return chunk;
    tail = [chunk.subarray(mark + 1)];
    return chunk.subarray(0, mark);
  };
  let ended: { readonly end: End } | undefined;
  const begun = Promise.withResolvers<void>();
  const finish = async (): Promise<void> => {
    if (tail === undefined) throw brokenMidway();
    ended = { end: await endOf(readEnd(Buffer.concat(tail).toString("latin1"), size)) };
    begun.resolve();
  };
  const records = pass(source, takeRecords, finish, PAGE_BYTES);
  source.once("pause", begun.resolve);
  records.once("error", begun.reject);
  if (signal !== undefined) addAbortSignal(signal, source);
  await begun.promise;
  return {
    records,
    end: () => {
      if (ended === undefined) throw unexpectedAnswer();
      return ended.end;
    },
  };
};

/** A page without records, for which no query runs. */
export const emptyPage = <End>(end: End): Streamed<End> => ({ records: Readable.from([]), end: () => end });
