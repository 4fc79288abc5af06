import type { Caller } from "../http/caller.ts";
import { ExportAnswerError } from "../http/errors.ts";
import type { ChangesQuery } from "../interface/types.ts";
import { partsOf, valueTexts } from "./json-parts.ts";
import type { DeletionOf, ListName, RecordOf } from "./kinds.ts";
import type { Block } from "./line-blocks.ts";
import { readPage, textOfMeta } from "./pages.ts";

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

const readChanges = async (caller: Caller, list: ListName, query: ChangesQuery) => {
  const page = await readPage<object>(caller, changesPath(list), query);
  const cursor = textOfMeta(page.meta, "next_cursor");
  const endOfStream = page.meta["end_of_stream"];
  if (cursor === null || typeof endOfStream !== "boolean") {
    throw new ExportAnswerError("a page of changes has no next_cursor or end_of_stream");
  }
  if (!endOfStream && cursor === query.cursor) {
    throw new ExportAnswerError("the cursor of the changes repeats itself before their end");
  }
  return { ...page, cursor, endOfStream };
};

export async function* walkChanges<List extends ListName>(
  caller: Caller,
  list: List,
  begin: ChangesQuery,
): AsyncGenerator<Changes<List>, void> {
  let query: ChangesQuery = begin;
  for (;;) {
    const { data, cursor, endOfStream, watermark } = await readChanges(caller, list, query);
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

export const readChangesBlock = async (
  caller: Caller,
  list: ListName,
  query: ChangesQuery,
): Promise<ChangesBlock> => {
  const { text, cursor, endOfStream, watermark } = await readChanges(caller, list, query);
  const texts = partsOf(valueTexts(text).get("data") ?? "");
  // White space in JSON may be newlines.
  const lines = texts.map((text) => `${text.replaceAll("\n", " ")}\n`);
  const bytes = new TextEncoder().encode(lines.join(""));
  return { bytes, lines: lines.length, cursor, endOfStream, watermark };
};
