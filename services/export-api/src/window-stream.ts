import { Readable } from "node:stream";
import { retry } from "@conversation-export/runtime";
import type { MessagePageQuery, Page, PagePosition, WindowLines } from "@conversation-export/warehouse";

/** A part of a window: its records, one a line, each line ended, and how to open the part behind it. */
export type Step = { readonly lines: Readable; readonly next: OpenStep | null };
/** Rejects, or its lines error, when the signal aborts. */
export type OpenStep = (signal: AbortSignal) => Promise<Step>;

export type WindowStream = {
  /** One record a line, each line ended. Errors when the warehouse does, never ends cleanly then. */
  readonly records: Readable;
  /** Records handed over so far. */
  count(): number;
};

/** Records of a step that is a page. */
const PAGE_STEP = 10_000;
const RETRY_DEADLINE_MS = 15_000;
const NEWLINE = 10;

/** A window by creation in steps of dates. Resolves to a step as soon as its records begin to flow. */
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

/** Any window in steps of pages. */
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

const endLastLine = (records: Readable): Readable => {
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
 * A whole window as it flows, step by step; the next step is opened while one is sent. Rejects when the first step
 * cannot be opened. Destroying `records`, or aborting `signal`, cancels what runs.
 */
export const openWindow = async (open: OpenStep, signal: AbortSignal): Promise<WindowStream> => {
  let count = 0;
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);

  const openUnlessEnded = async (step: OpenStep): Promise<Step> => {
    const opened = await step(either);
    // Nobody may be left who reads it.
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
        // It may fail before it is waited for.
        following?.catch(() => undefined);
        for await (const chunk of step.lines as AsyncIterable<Buffer>) {
          count += countLines(chunk);
          yield chunk;
        }
        step = await following;
        // ClickHouse gives up a query that nobody reads for long; nothing of it was sent yet.
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
  // Bytes, so that the buffers are counted by size.
  const records = Readable.from(lines(first), { objectMode: false, highWaterMark: 256 * 1024 });
  records.once("close", () => {
    ended.abort();
    first.lines.destroy();
  });
  return { records, count: () => count };
};
