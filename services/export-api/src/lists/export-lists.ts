import type { ListName } from "@conversation-export/domain";
import type { ListSteps, MessagePageQuery, OpenStep, Page, Reader } from "@conversation-export/warehouse";
import type { PageRequest } from "../parameters/window-parameters.ts";

/** A list of records that requests read by windows of dates. */
export type ExportList = {
  readonly name: Extract<ListName, "conversations" | "messages">;
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

export const CONVERSATIONS: ExportList = {
  name: "conversations",
  readPage: (reader, filter, query) =>
    filter === "created" ? reader.conversationsByCreation(query) : reader.conversationsByUpdate(query),
  openSteps: (steps, filter, query) => steps.conversations({ ...query, filter }),
};

export const MESSAGES: ExportList = {
  name: "messages",
  readPage: (reader, _filter, query) => reader.messagesByCreation(query),
  openSteps: (steps, _filter, query) => steps.messages(query),
};
