import { addAbortSignal, Readable } from "node:stream";
import type { PagePosition, Streamed } from "./page.ts";
import { brokenMidway, toWarehouseError, unexpectedAnswer } from "../session/warehouse-error.ts";

// ClickHouse puts one before an exception; records are compact JSON, which contains none.
const CARRIAGE_RETURN = 13;
/** Records hold it as an escape only. */
export const MARK = "\u0003";
const MARK_BYTE = 3;

/** More costs memory and garbage collection (docs/decisions/0028). */
const WAITING_BYTES = 256 * 1024;
/** A shorter answer is known to its end before the page begins. */
const PAGE_BYTES = 2 * 1024 * 1024;

const NOTHING = Buffer.alloc(0);

/** null: broken. */
type PassChunk = (chunk: Buffer) => Buffer | null;

/** `finish`: before the stream ends; throws when the answer is not whole. `firstBytes`: may wait for the first read. */
const pass = (
  source: Readable,
  passChunk: PassChunk,
  finish: () => void | Promise<void>,
  firstBytes = WAITING_BYTES,
): Readable => {
  let mayWait = firstBytes;
  const passed = new Readable({
    highWaterMark: WAITING_BYTES,
    read() {
      source.resume();
    },
    destroy(error, done) {
      source.destroy();
      done(error);
    },
  });
  const fail = (error: unknown): void => void passed.destroy(toWarehouseError(error));
  // Without this listener, an error before the first read would end the process.
  passed.on("error", () => {});
  source.on("data", (chunk: Buffer) => {
    const passing = passChunk(chunk);
    if (passing === null) fail(brokenMidway());
    // An empty push would stop a stream that is waited for.
    else if (passing.length > 0 && !passed.push(passing) && passed.readableLength >= mayWait) {
      mayWait = WAITING_BYTES;
      source.pause();
    }
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

/** Never ends cleanly without the mark. */
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

/** Never ends cleanly without `mark` at the end. */
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
  readonly last: PagePosition | undefined;
  readonly behind: PagePosition | undefined;
};

const readKey = (text: string | undefined): PagePosition => {
  const [, date, id] = /^(\d+) ([\dA-F]*)$/.exec(text ?? "") ?? [];
  if (id === undefined) throw unexpectedAnswer();
  return { date: Number(date), id: Buffer.from(id, "hex").toString() };
};

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

/** Never ends cleanly when ClickHouse fails. `endOf`: called before the stream ends. */
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

export const emptyPage = <End>(end: End): Streamed<End> => ({ records: Readable.from([]), end: () => end });
