import { type ClientOptions, createCaller, type Query } from "./http/caller.ts";
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
import { type Changes, createChangesReader, walkChanges } from "./lists/changes.ts";
import { type DeletionOf, KINDS, type ListName, type RecordOf, type WindowOf } from "./lists/kinds.ts";
import { type Block, type ChangesTrailer, parseLine, textsOf, type Trailer } from "./lists/line-blocks.ts";
import { walkPages } from "./lists/pages.ts";
import { createStreams } from "./lists/streams.ts";
import { type ConversationWindow, type Instant, type MessageWindow, windowQuery } from "./lists/windows.ts";

type PageSize = { readonly pageSize?: number };

export type EndUsersOptions = {
  readonly externalId?: string;
  /** Inclusive. */
  readonly from?: string;
  readonly pageSize?: number;
};

/** Neither cursor nor date: everything. */
export type ChangesOptions = PageSize &
  (
    | { readonly cursor: string; readonly storedSince?: never }
    | { readonly cursor?: never; readonly storedSince?: Instant }
  );

/** Methods throw ExportApiError, ExportConnectionError or ExportAnswerError once no repeat is left. */
export type Client = {
  conversations(options: ConversationWindow & PageSize): AsyncGenerator<Conversation, void>;
  messages(options: MessageWindow & PageSize): AsyncGenerator<Message, void>;
  endUsers(options?: EndUsersOptions): AsyncGenerator<EndUser, void>;
  /**
   * One stream, resumed after breaks: each record comes once that does not change meanwhile, so write by id.
   * Returns the trailer.
   */
  lines<List extends keyof WindowOf>(
    list: List,
    window: WindowOf[List],
  ): AsyncGenerator<RecordOf[List], Trailer>;
  /** Store each portion's cursor with its records. */
  changes<List extends ListName>(list: List, options?: ChangesOptions): AsyncGenerator<Changes<List>, void>;
  /** One stream, not repeated: records count only once the trailer, with the cursor, is returned. */
  changeLines<List extends ListName>(
    list: List,
    options?: Omit<ChangesOptions, "pageSize">,
  ): AsyncGenerator<RecordOf[List] | DeletionOf[List], ChangesTrailer>;
  /** Returns the request's id; repeated only if it certainly had no effect. */
  requestErasure(person: Omit<DataSubjectRequest, "type">): Promise<string>;
  dataSubjectRequest(id: string): Promise<DataSubjectRequestStatus>;
  /** Newest first. */
  dataSubjectRequests(options?: PageSize): AsyncGenerator<DataSubjectRequestEntry, void>;
  /** Repeating it with the same key within a day starts no second conversation. */
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
    await blocks.return(undefined as never);
  }
}

export const createClient = (options: ClientOptions): Client => {
  const caller = createCaller(options);
  const readChanges = createChangesReader(caller);
  const streams = createStreams(caller);
  const walk = <List extends ListName>(list: List, query: Query, pageSize: number | undefined) => {
    const { path, link, size } = KINDS[list];
    return walkPages<RecordOf[List]>(caller, { path, query: { ...query, [size]: pageSize }, link });
  };

  return {
    conversations: (given) => walk("conversations", windowQuery(given).query, given.pageSize),
    messages: (given) => walk("messages", windowQuery(given).query, given.pageSize),
    endUsers: ({ externalId, from, pageSize } = {}) =>
      walk("end_users", { external_id: externalId, cursor: from }, pageSize),
    lines: (list, window) => recordsOf(streams.window(list, window)),
    changes: (list, given = {}) => walkChanges(readChanges, list, changesQuery(given)),
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
