import type { Caller } from "../http/caller.ts";
import { ExportAnswerError, LongAnswerError } from "../http/errors.ts";
import type { ChangesQuery } from "../interface/types.ts";
import { partsOf, valueTexts } from "./json-parts.ts";
import type { DeletionOf, ListName, RecordOf } from "./kinds.ts";
import type { Block } from "./line-blocks.ts";
import { type Page, readPage, textOfMeta } from "./pages.ts";

/** Store `cursor` with the records. */
export type Changes<List extends ListName> = {
  readonly records: readonly RecordOf[List][];
  readonly deletions: readonly DeletionOf[List][];
  readonly cursor: string;
  readonly endOfStream: boolean;
  /** All events on the bus before it are included; null: unknown. */
  readonly watermark: string | null;
};

export const changesPath = (list: ListName): string => `/v2/export/changes/${list}`;

const isDeletion = (change: object): change is DeletionOf[ListName] =>
  "deleted" in change && change.deleted === true;

type ChangesPage = Page<object> & Pick<Changes<ListName>, "cursor" | "endOfStream">;

/** Repeated until complete, with fewer records if those are large. */
export type ReadChanges = (list: ListName, query: ChangesQuery) => Promise<ChangesPage>;

const DEFAULT_PAGE_SIZE = 1_000;
/** A page takes several times as much memory. */
const MAX_BYTES = 16 * 1024 * 1024;

const changesPageOf = (page: Page<object>, from: string | null | undefined): ChangesPage => {
  const cursor = textOfMeta(page.meta, "next_cursor");
  const endOfStream = page.meta["end_of_stream"];
  if (cursor === null || typeof endOfStream !== "boolean") {
    throw new ExportAnswerError("a page of changes has no next_cursor or end_of_stream");
  }
  if (!endOfStream && cursor === from) {
    throw new ExportAnswerError("the cursor of the changes repeats itself before their end");
  }
  return { ...page, cursor, endOfStream };
};

export const createChangesReader = (caller: Caller): ReadChanges => {
  // Kept, since large records follow each other.
  let maxSize = Infinity;
  return async (list, query) => {
    const asked = query.page_size ?? DEFAULT_PAGE_SIZE;
    for (;;) {
      const size = Math.min(asked, maxSize);
      const sized = size === asked ? query : { ...query, page_size: size };
      const maxBytes = size === 1 ? undefined : MAX_BYTES;
      try {
        const page = await readPage<object>(caller, changesPath(list), sized, maxBytes);
        if (size === maxSize && page.text.length < MAX_BYTES / 8) maxSize *= 2;
        return changesPageOf(page, query.cursor);
      } catch (error) {
        if (!(error instanceof LongAnswerError) || size === 1) throw error;
        maxSize = Math.ceil(size / 2);
      }
    }
  };
};

export async function* walkChanges<List extends ListName>(
  readChanges: ReadChanges,
  list: List,
  begin: ChangesQuery,
): AsyncGenerator<Changes<List>, void> {
  let query: ChangesQuery = begin;
  for (;;) {
    const { data, cursor, endOfStream, watermark } = await readChanges(list, query);
    yield {
      records: data.filter((change) => !isDeletion(change)) as RecordOf[List][],
      deletions: data.filter(isDeletion) as DeletionOf[List][],
      cursor,
      endOfStream,
      watermark,
    };
    if (endOfStream) return;
    query = { cursor, ...(begin.page_size !== undefined && { page_size: begin.page_size }) };
  }
}

export type ChangesBlock = Block & Pick<Changes<ListName>, "cursor" | "endOfStream" | "watermark">;

export const changesBlockOf = ({ text, cursor, endOfStream, watermark }: ChangesPage): ChangesBlock => {
  const texts = partsOf(valueTexts(text).get("data") ?? "");
  // White space in JSON may be newlines.
  const lines = texts.map((text) => `${text.replaceAll("\n", " ")}\n`);
  const bytes = new TextEncoder().encode(lines.join(""));
  return { bytes, lines: lines.length, cursor, endOfStream, watermark };
};
