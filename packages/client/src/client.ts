import { callerOf, type ClientOptions } from "./client-options.ts";
import { ExportAnswerError } from "./http/errors.ts";
import type {
  ChangesQuery,
  Conversation,
  DataSubjectRequest,
  DataSubjectRequestEntry,
  DataSubjectRequestStatus,
  EndUser,
  Message,
  SmsTrigger,
} from "./interface/types.ts";
import { type Changes, type DeletionOf, type ListName, type RecordOf, walkChanges } from "./lists/changes.ts";
import { type Block, type ChangesTrailer, parseLine, textsOf, type Trailer } from "./lists/line-blocks.ts";
import { walkPages } from "./lists/pages.ts";
import { createStreams, type WindowOf } from "./lists/streams.ts";
import {
  type ConversationWindow,
  conversationsQuery,
  type Instant,
  type MessageWindow,
  messagesQuery,
} from "./lists/windows.ts";

type PageSize = { readonly pageSize?: number };

export type EndUsersOptions = {
  /** Only people whom another system knows by this id. */
  readonly externalId?: string;
  /** The id at which to begin, that one included. */
  readonly from?: string;
  readonly pageSize?: number;
};

/** Where a reader of changes goes on, or begins: with everything, or with what changed since. */
export type ChangesOptions = PageSize &
  (
    | { readonly cursor: string; readonly storedSince?: never }
    | { readonly cursor?: never; readonly storedSince?: Instant }
  );

/**
 * A reader of the export API. Generators end with an error of `ExportApiError`, `ExportConnectionError` or
 * `ExportAnswerError` when an attempt cannot be repeated or has been repeated often enough.
 */
export type Client = {
  conversations(options: ConversationWindow & PageSize): AsyncGenerator<Conversation, void>;
  messages(options: MessageWindow & PageSize): AsyncGenerator<Message, void>;
  /** End users by their ids. */
  endUsers(options?: EndUsersOptions): AsyncGenerator<EndUser, void>;
  /**
   * A whole window as one stream, the quickest way to read much. A stream that breaks is read again from its
   * last record; each comes once. Returns the trailer.
   */
  lines<List extends keyof WindowOf>(
    list: List,
    window: WindowOf[List],
  ): AsyncGenerator<RecordOf[List], Trailer>;
  /** What changed since a cursor, up to now, in portions that each have the cursor to store with them. */
  changes<List extends ListName>(list: List, options?: ChangesOptions): AsyncGenerator<Changes<List>, void>;
  /**
   * The same as one stream. Returns the trailer with the cursor; what came counts only with it. It is not
   * repeated: after an ExportConnectionError ask again with the cursor that you have.
   */
  changeLines<List extends ListName>(
    list: List,
    options?: Omit<ChangesOptions, "pageSize">,
  ): AsyncGenerator<RecordOf[List] | DeletionOf[List], ChangesTrailer>;
  /**
   * Asks for the data of a person to be erased; gives the id of the request. It is repeated only when it
   * certainly had no effect.
   */
  requestErasure(person: Omit<DataSubjectRequest, "type">): Promise<string>;
  dataSubjectRequest(id: string): Promise<DataSubjectRequestStatus>;
  /** The client's requests, the newest first. */
  dataSubjectRequests(options?: PageSize): AsyncGenerator<DataSubjectRequestEntry, void>;
  /** Starts a conversation by SMS; repeating it with the same key within a day makes no second one. */
  triggerSms(
    trigger: SmsTrigger,
    options?: { readonly idempotencyKey?: string },
  ): Promise<{ readonly id: string }>;
};

const changesQuery = ({ cursor, storedSince, pageSize }: ChangesOptions): ChangesQuery => ({
  ...(cursor !== undefined && { cursor }),
  ...(storedSince !== undefined && {
    stored_since: typeof storedSince === "string" ? storedSince : storedSince.toISOString(),
  }),
  ...(pageSize !== undefined && { page_size: pageSize }),
});

async function* recordsOf<T, Last>(blocks: AsyncGenerator<Block, Last>): AsyncGenerator<T, Last> {
  try {
    for (;;) {
      const next = await blocks.next();
      if (next.done === true) return next.value;
      for (const text of textsOf(next.value.bytes)) yield parseLine(text) as T;
    }
  } finally {
    // Ends the stream when its reader stops early.
    await blocks.return(undefined as never);
  }
}

export const createClient = (options: ClientOptions): Client => {
  const caller = callerOf(options);
  const streams = createStreams(caller);
  const size = ({ pageSize }: PageSize) => ({ page_size: pageSize });

  return {
    conversations: (given) =>
      walkPages(caller, {
        path: "/v2/export/conversations",
        query: { ...conversationsQuery(given).query, ...size(given) },
        link: "next_page_uri",
      }),
    messages: (given) =>
      walkPages(caller, {
        path: "/v2/export/messages",
        query: { ...messagesQuery(given).query, ...size(given) },
        link: "next_page_uri",
      }),
    endUsers: ({ externalId, from, pageSize } = {}) =>
      walkPages(caller, {
        path: "/v2/end-users/",
        query: { external_id: externalId, cursor: from, limit: pageSize },
        link: "next_page_url",
      }),
    lines: (list, window) => recordsOf(streams.window(list, window)),
    changes: (list, given = {}) => walkChanges(caller, list, changesQuery(given)),
    changeLines: (list, given = {}) =>
      recordsOf(streams.changes(list, changesQuery(given as ChangesOptions))),
    requestErasure: async (person) => {
      const { headers } = await caller.json({
        path: "/v2/data-subject-request",
        body: { type: "ERASURE", ...person },
      });
      const id = headers.get("location")?.split("/").at(-1);
      if (id === undefined || id === "") throw new ExportAnswerError("the answer has no Location");
      return id;
    },
    dataSubjectRequest: async (id) =>
      (await caller.json({ path: `/v2/data-subject-request/${encodeURIComponent(id)}` }))
        .value as DataSubjectRequestStatus,
    dataSubjectRequests: (given = {}) =>
      walkPages(caller, {
        path: "/v2/data-subject-request",
        query: { limit: given.pageSize },
        link: "next_page_url",
      }),
    triggerSms: async (trigger, { idempotencyKey = crypto.randomUUID() } = {}) =>
      (await caller.json({ path: "/campaigns/sms/trigger", body: trigger, idempotencyKey })).value as {
        id: string;
      },
  };
};
