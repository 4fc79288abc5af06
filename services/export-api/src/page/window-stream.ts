import { Readable } from "node:stream";
import { retry } from "@conversation-export/runtime";
import type { MessagePageQuery, Page, PagePosition, WindowLines } from "@conversation-export/warehouse";

import type { AccessWatch } from "../admission/access-watch.ts";

/** A part of a list, and how to open the next part. */
export type Step = { readonly bytes: Readable; readonly next: OpenStep | null };
/** When the signal aborts, it rejects or its bytes end with an error. */
export type OpenStep = (signal: AbortSignal) => Promise<Step>;

/** How one answer is made of the steps of a list. */
export type Join = {
  /** What leaves of the next bytes of a step. */
  pass(chunk: Buffer): Buffer;
  /** Called behind each step. @throws ServiceError when the step was not whole */
  endStep(): void;
  /** What leaves behind the last step. */
  end(): Buffer;
  /** Records so far. */
  count(): number;
};

export type WindowStream = {
  /** When the warehouse fails, or a step is not whole, it ends with an error. */
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
      return { bytes: await lines.read({ ...range, to: end }), next: end < to ? from(end) : null };
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
      return { bytes: rows === 0 ? records : endLastLine(records), next: next && behind(next) };
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

const NOTHING = Buffer.alloc(0);

/** Steps of lines, each of which ends with a newline. */
export const joinLines = (): Join => {
  let count = 0;
  return {
    pass: (chunk) => {
      count += countLines(chunk);
      return chunk;
    },
    endStep: () => {},
    end: () => NOTHING,
    count: () => count,
  };
};

/**
 * Streams a whole list step by step; the next step is opened while one is sent, each after it was asked whether the
 * caller is still allowed. Destroying `records` or aborting the signal of `call` cancels the running queries.
 * @throws the error of the first step when it cannot be opened
 */
export const openWindow = async (
  open: OpenStep,
  { signal, access }: { readonly signal: AbortSignal; readonly access: Pick<AccessWatch, "check"> },
  join: Join = joinLines(),
): Promise<WindowStream> => {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);

  const openUnlessEnded = async (step: OpenStep): Promise<Step> => {
    await access.check();
    const opened = await step(either);
    // The caller may have gone while it was opened.
    if (either.aborted) opened.bytes.destroy();
    return opened;
  };
  const openAgain = (step: OpenStep): Promise<Step> =>
    retry(() => openUnlessEnded(step), { signal: either, deadlineMs: RETRY_DEADLINE_MS });

  const joined = async function* (first: Step): AsyncGenerator<Buffer> {
    let step: Step | undefined = first;
    let following: Promise<Step> | undefined;
    try {
      while (step !== undefined) {
        const { next }: Step = step;
        following = next === null ? undefined : openAgain(next);
        // It may fail before it is awaited, which would end the process.
        following?.catch(() => undefined);
        for await (const chunk of step.bytes as AsyncIterable<Buffer>) {
          const ready = join.pass(chunk);
          if (ready.length > 0) yield ready;
        }
        join.endStep();
        step = await following;
        // ClickHouse drops a query that is not read for long. Nothing of it was sent yet, so it can be opened
        // again.
        if (step?.bytes.destroyed === true && next !== null) step = await openAgain(next);
      }
      const last = join.end();
      if (last.length > 0) yield last;
    } finally {
      ended.abort();
      void following?.then(
        (opened) => opened.bytes.destroy(),
        () => undefined,
      );
    }
  };

  const first = await openUnlessEnded(open);
  // Not in object mode: the high-water mark counts bytes.
  const records = Readable.from(joined(first), { objectMode: false, highWaterMark: 256 * 1024 });
  records.once("close", () => {
    ended.abort();
    first.bytes.destroy();
  });
  return { records, count: join.count };
};
