import { Readable } from "node:stream";
import { retry } from "@conversation-export/runtime";
import type { MessagePageQuery, Page } from "@conversation-export/warehouse";

/** Records of one query: large enough that its start does not count, small enough for the memory of the server. */
const STEP = 10_000;
const RETRY_DEADLINE_MS = 15_000;

export type WindowStream = {
  /** One record a line, each line ended. Errors when the warehouse does, never ends cleanly then. */
  readonly records: Readable;
  /** Records handed over so far. */
  count(): number;
};

/**
 * A whole window as it flows, page by page; the next page is asked for while one is sent. Rejects when the first
 * page cannot be read. Destroying `records`, or aborting `query.signal`, cancels what runs.
 */
export const openWindow = async (
  query: Omit<MessagePageQuery, "pageSize" | "wholeTies" | "separator">,
  readPage: (query: MessagePageQuery) => Promise<Page>,
): Promise<WindowStream> => {
  let count = 0;
  const ended = new AbortController();
  const signal = query.signal === undefined ? ended.signal : AbortSignal.any([query.signal, ended.signal]);

  const read = async (after: Page["next"]): Promise<Page> => {
    const page = await readPage({
      ...query,
      ...(after !== null && { after }),
      pageSize: STEP,
      wholeTies: false,
      separator: "\n",
      signal,
    });
    // Nobody may be left who reads it.
    if (signal.aborted) page.records.destroy();
    return page;
  };
  const readAgain = (after: Page["next"]): Promise<Page> =>
    retry(() => read(after), { signal, deadlineMs: RETRY_DEADLINE_MS });

  const lines = async function* (first: Page): AsyncGenerator<Buffer | string> {
    let page: Page | undefined = first;
    let following: Promise<Page> | undefined;
    try {
      while (page !== undefined) {
        const { records, rows, next }: Page = page;
        following = next === null ? undefined : readAgain(next);
        // It may fail before it is waited for.
        following?.catch(() => undefined);
        for await (const chunk of records) yield chunk as Buffer;
        count += rows;
        if (rows > 0) yield "\n";
        page = await following;
      }
    } finally {
      ended.abort();
      void following?.then(
        ({ records }) => records.destroy(),
        () => undefined,
      );
    }
  };

  const first = await read(query.after ?? null);
  // Bytes, so that the buffers are counted by size.
  const records = Readable.from(lines(first), { objectMode: false, highWaterMark: 256 * 1024 });
  records.once("close", () => {
    ended.abort();
    first.records.destroy();
  });
  return { records, count: () => count };
};
