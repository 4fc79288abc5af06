import { type ListName, publicConversation, publicEndUser, publicMessage } from "@conversation-export/domain";
import type { MessagePageQuery, ListSteps, OpenStep, Page, Reader } from "@conversation-export/warehouse";
import * as examples from "../openapi/examples.ts";
import type { PageRequest } from "../parameters/window-parameters.ts";

/** How windows of dates of a list are read. */
export type WindowReads = {
  readonly readPage: (
    reader: Reader,
    filter: PageRequest["filter"],
    query: MessagePageQuery,
  ) => Promise<Page>;
  readonly openSteps: (
    steps: ListSteps,
    filter: PageRequest["filter"],
    query: Pick<MessagePageQuery, "clientId" | "since" | "to" | "after" | "conversationId">,
  ) => OpenStep;
};

/** What the operations of a list have in common, whatever their envelopes and formats. */
export const LISTS = {
  conversations: {
    kind: "conversation",
    scope: "export",
    noun: "Conversations",
    id: "_id",
    record: publicConversation,
    example: examples.CONVERSATION,
    readPage: (reader, filter, query) =>
      filter === "created" ? reader.conversationsByCreation(query) : reader.conversationsByUpdate(query),
    openSteps: (steps, filter, query) => steps.conversations({ ...query, filter }),
  },
  messages: {
    kind: "message",
    scope: "export",
    noun: "Messages",
    id: "_id",
    record: publicMessage,
    example: examples.MESSAGE,
    readPage: (reader, _filter, query) => reader.messagesByCreation(query),
    openSteps: (steps, _filter, query) => steps.messages(query),
  },
  end_users: {
    kind: "end_user",
    scope: "end_users",
    noun: "EndUsers",
    id: "end_user_id",
    record: publicEndUser,
    example: examples.END_USER,
  },
} as const satisfies Record<ListName, Partial<WindowReads> & Readonly<Record<string, unknown>>>;

/** The lists that are read by windows of dates. */
export const WINDOW_LISTS = ["conversations", "messages"] as const satisfies readonly ListName[];
export type WindowList = (typeof WINDOW_LISTS)[number];
