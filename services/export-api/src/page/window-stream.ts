import { Readable } from "node:stream";
import { retry } from "@conversation-export/runtime";
import type { MessagePageQuery, Page, PagePosition, WindowLines } from "@conversation-export/warehouse";

/**
 * A part of a window: its records, each on a line that ends with a newline, and how to open the next part.
 */
export type Step = { readonly lines: Readable; readonly next: OpenStep | null };
/** When the signal aborts, it rejects or its lines end with an error. */
export type OpenStep = (signal: AbortSignal) => Promise<Step>;

export type WindowStream = {
  /** One record a line, each ended by a newline. When the warehouse fails, it ends with an error. */
  readonly records: Readable;
  /** Records read from `records` so far. */
  count(): number;
};

/** Records in a step of `pageSteps`. */
const PAGE_STEP = 10_000;
const RETRY_DEADLINE_MS = 15_000;
const NEWLINE = 10;

/**
 * Reads a window by creation date in ranges of dates. A step resolves as soon as its records begin to flow.
 */
export const rangeSteps = (
  lines: WindowLines,
  { clientId, since, to }: Pick<MessagePageQuery, "clientId" | "since" | "to">,
): OpenStep => {
  const from =
    (start: number): OpenStep =>
    async (signal) => {
      const range = { clientId, since: start, to, signal };
      const end = await lines.stepEnd(range);
      return { lines: await lines.read({ ...range, to: end }), next: end < to ? from(end) : null };
    };
  return from(since);
};

/** Reads any window page by page. */
export const pageSteps = (
  readPage: (query: MessagePageQuery) => Promise<Page>,
  query: Omit<MessagePageQuery, "pageSize" | "wholeTies" | "separator" | "signal">,
): OpenStep => {
  const behind =
    (after: PagePosition | undefined): OpenStep =>
    async (signal) => {
      const { rows, next, records } = await readPage({
        ...query,
        ...(after !== undefined && { after }),
        pageSize: PAGE_STEP,
        wholeTies: false,
        separator: "\n",
        signal,
      });
      return { lines: rows === 0 ? records : endLastLine(records), next: next && behind(next) };
    };
  return behind(query.after);
};

/** Adds the newline that separates these records from those of the next page. */
export const endLastLine = (records: Readable): Readable => {
  const ended = async function* (): AsyncGenerator<Buffer | string> {
    for await (const chunk of records) yield chunk as Buffer;
    yield "\n";
  };
  const lines = Readable.from(ended(), { objectMode: false });
  lines.once("close", () => records.destroy());
  return lines;
};

const countLines = (chunk: Buffer): number => {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
};

/**
 * Streams a whole window step by step; the next step is opened while one is sent. Destroying `records` or
 * aborting `signal` cancels the running queries.
 * @throws the error of the first step when it cannot be opened
 */
export const openWindow = async (open: OpenStep, signal: AbortSignal): Promise<WindowStream> => {
  let count = 0;
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);

  const openUnlessEnded = async (step: OpenStep): Promise<Step> => {
    const opened = await step(either);
    // The caller may have gone while it was opened.
    if (either.aborted) opened.lines.destroy();
    return opened;
  };
  const openAgain = (step: OpenStep): Promise<Step> =>
    retry(() => openUnlessEnded(step), { signal: either, deadlineMs: RETRY_DEADLINE_MS });

  const lines = async function* (first: Step): AsyncGenerator<Buffer> {
    let step: Step | undefined = first;
    let following: Promise<Step> | undefined;
    try {
      while (step !== undefined) {
        const { next }: Step = step;
        following = next === null ? undefined : openAgain(next);
        // It may fail before it is awaited, which would end the process.
        following?.catch(() => undefined);
        for await (const chunk of step.lines as AsyncIterable<Buffer>) {
          count += countLines(chunk);
          yield chunk;
        }
        step = await following;
        // ClickHouse drops a query that is not read for long. Nothing of it was sent yet, so it can be opened
        // again.
        if (step?.lines.destroyed === true && next !== null) step = await openAgain(next);
      }
    } finally {
      ended.abort();
      void following?.then(
        (opened) => opened.lines.destroy(),
        () => undefined,
      );
    }
  };

  const first = await openUnlessEnded(open);
  // Not in object mode: the high-water mark counts bytes.
  const records = Readable.from(lines(first), { objectMode: false, highWaterMark: 256 * 1024 });
  records.once("close", () => {
    ended.abort();
    first.lines.destroy();
  });
  return { records, count: () => count };
};
