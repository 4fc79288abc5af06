import type { Caller } from "../http/caller.ts";
import type { ChangesQuery } from "../interface/types.ts";
import { changesPath, type ListName } from "./changes.ts";
import { type Block, type ChangesTrailer, lineBlocks, type Trailer } from "./line-blocks.ts";
import { type Place, type PlacedBlock, windowBlocks } from "./window-blocks.ts";
import {
  type ConversationWindow,
  conversationsQuery,
  type MessageWindow,
  messagesQuery,
  SINCE,
} from "./windows.ts";

const LINES = "application/x-ndjson";

/** The windows of the lists that have them. */
export type WindowOf = { readonly conversations: ConversationWindow; readonly messages: MessageWindow };

/** Streams as they come, for what writes them without reading each record. */
export type Streams = {
  /** The lines of a window from `place` on, read again where they break off. */
  window<List extends keyof WindowOf>(
    list: List,
    window: WindowOf[List],
    place?: Place,
  ): AsyncGenerator<PlacedBlock, Trailer>;
  /** The lines of changes; a stream that breaks ends with an ExportConnectionError. */
  changes(list: ListName, query: ChangesQuery): AsyncGenerator<Block, ChangesTrailer>;
};

export const createStreams = (caller: Caller): Streams => ({
  window: (list, window, place) => {
    const { query, field } =
      list === "messages" ? messagesQuery(window as MessageWindow) : conversationsQuery(window);
    const open = async (since: string | undefined) => {
      const from = since === undefined ? {} : { [SINCE[field]]: since };
      const opened = await caller.open({
        path: `/v2/export/${list}`,
        query: { ...query, ...from },
        accept: LINES,
      });
      return opened.chunks;
    };
    return windowBlocks({ open, retry: caller.retry, field, place });
  },
  changes: async function* (list, query) {
    const { chunks } = await caller.open({ path: changesPath(list), query, accept: LINES });
    return yield* lineBlocks<ChangesTrailer>(chunks);
  },
});
