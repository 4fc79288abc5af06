import type { Caller, Query } from "../http/caller.ts";
import { ExportAnswerError } from "../http/errors.ts";
import type { ChangesQuery } from "../interface/types.ts";
import { type ChangesBlock, changesBlockOf, changesPath, createChangesReader } from "./changes.ts";
import { KINDS, type ListName, type WindowOf } from "./kinds.ts";
import { type Block, type ChangesTrailer, lineBlocks, type Trailer } from "./line-blocks.ts";
import { readPage, textOfMeta } from "./pages.ts";
import { type Place, type PlacedBlock, windowBlocks } from "./window-blocks.ts";
import { SINCE, windowQuery } from "./windows.ts";

const LINES = "application/x-ndjson";

export type Streams = {
  /** Resumed after breaks. */
  window<List extends keyof WindowOf>(
    list: List,
    window: WindowOf[List],
    place?: Place,
  ): AsyncGenerator<PlacedBlock, Trailer>;
  /** Of any list, without its order of dates. */
  records(list: ListName): AsyncGenerator<unknown, void>;
  /** May have fewer records than were asked for. */
  changesPage(list: ListName, query: ChangesQuery): Promise<ChangesBlock>;
  /** @throws ExportConnectionError when it breaks off */
  changes(list: ListName, query: ChangesQuery): AsyncGenerator<Block, ChangesTrailer>;
};

/** @throws ExportAnswerError for another type */
const openLines = async (caller: Caller, path: string, query: Query) => {
  const { headers, chunks, cancel } = await caller.open({ path, query, accept: LINES });
  const type = headers.get("content-type") ?? "nothing";
  if (type.startsWith(LINES)) return chunks;
  await cancel();
  throw new ExportAnswerError(`the answer of ${path} is ${type}, not ${LINES}`);
};

/** Uses only the cursor of links: their host may differ inside a network. */
async function* recordsOf(caller: Caller, list: ListName): AsyncGenerator<unknown, void> {
  const { path, link, size } = KINDS[list];
  let from: string | null = null;
  for (;;) {
    const { data, meta } = await readPage<unknown>(caller, path, { cursor: from, [size]: 1_000 });
    yield* data;
    const next = textOfMeta(meta, link);
    if (next === null) return;
    const cursor = new URL(next, "http://link").searchParams.get("cursor");
    if (cursor === null || cursor === from)
      throw new ExportAnswerError(`a page of ${list} has no further link`);
    from = cursor;
  }
}

export const createStreams = (caller: Caller): Streams => {
  const readChanges = createChangesReader(caller);
  return {
    window: (list, window, place) => {
      const { path, id } = KINDS[list];
      const { query, field } = windowQuery(window);
      const open = (since: string | undefined) => {
        const from = since === undefined ? {} : { [SINCE[field]]: since };
        return openLines(caller, path, { ...query, ...from });
      };
      return windowBlocks({ open, retry: caller.retry, names: { id, date: field }, place });
    },
    records: (list) => recordsOf(caller, list),
    changesPage: async (list, query) => changesBlockOf(await readChanges(list, query)),
    changes: async function* (list, query) {
      const blocks = lineBlocks<ChangesTrailer>(await openLines(caller, changesPath(list), query));
      const trailer = yield* blocks;
      if (typeof trailer.next_cursor !== "string" || !trailer.end_of_stream) {
        throw new ExportAnswerError("the trailer of changes has no next_cursor or end_of_stream");
      }
      return trailer;
    },
  };
};
