import type { Caller, Query } from "../http/caller.ts";
import { ExportAnswerError } from "../http/errors.ts";
import type { ChangesQuery } from "../interface/types.ts";
import { type ChangesBlock, changesPath, type ListName, readChangesBlock } from "./changes.ts";
import { type Block, type ChangesTrailer, lineBlocks, type Trailer } from "./line-blocks.ts";
import { readPage, textOfMeta } from "./pages.ts";
import { type Place, type PlacedBlock, windowBlocks } from "./window-blocks.ts";
import {
  type ConversationWindow,
  conversationsQuery,
  type MessageWindow,
  messagesQuery,
  SINCE,
} from "./windows.ts";

const LINES = "application/x-ndjson";

export type WindowOf = { readonly conversations: ConversationWindow; readonly messages: MessageWindow };

export type Streams = {
  /** Resumed after breaks. */
  window<List extends keyof WindowOf>(
    list: List,
    window: WindowOf[List],
    place?: Place,
  ): AsyncGenerator<PlacedBlock, Trailer>;
  endUsers(): AsyncGenerator<unknown, void>;
  /** Repeated until complete. */
  changesPage(list: ListName, query: ChangesQuery): Promise<ChangesBlock>;
  /** @throws ExportConnectionError when it breaks off */
  changes(list: ListName, query: ChangesQuery): AsyncGenerator<Block, ChangesTrailer>;
};

/** @throws ExportAnswerError for another type */
const openLines = async (caller: Caller, path: string, query: Query) => {
  const { headers, chunks } = await caller.open({ path, query, accept: LINES });
  const type = headers.get("content-type") ?? "nothing";
  if (type.startsWith(LINES)) return chunks;
  await chunks.return();
  throw new ExportAnswerError(`the answer of ${path} is ${type}, not ${LINES}`);
};

/** Uses only the cursor of links: their host may differ inside a network. */
async function* endUsersOf(caller: Caller): AsyncGenerator<unknown, void> {
  let from: string | null = null;
  for (;;) {
    const { data, meta } = await readPage<unknown>(caller, "/v2/end-users/", { cursor: from, limit: 1_000 });
    yield* data;
    const link = textOfMeta(meta, "next_page_url");
    if (link === null) return;
    const next = new URL(link, "http://link").searchParams.get("cursor");
    if (next === null || next === from)
      throw new ExportAnswerError("a page of end users has no further link");
    from = next;
  }
}

export const createStreams = (caller: Caller): Streams => ({
  window: (list, window, place) => {
    const { query, field } =
      list === "messages" ? messagesQuery(window as MessageWindow) : conversationsQuery(window);
    const open = (since: string | undefined) => {
      const from = since === undefined ? {} : { [SINCE[field]]: since };
      return openLines(caller, `/v2/export/${list}`, { ...query, ...from });
    };
    return windowBlocks({ open, retry: caller.retry, field, place });
  },
  endUsers: () => endUsersOf(caller),
  changesPage: (list, query) => readChangesBlock(caller, list, query),
  changes: async function* (list, query) {
    const blocks = lineBlocks<ChangesTrailer>(await openLines(caller, changesPath(list), query));
    const trailer = yield* blocks;
    if (typeof trailer.next_cursor !== "string" || !trailer.end_of_stream) {
      throw new ExportAnswerError("the trailer of changes has no next_cursor or end_of_stream");
    }
    return trailer;
  },
});
