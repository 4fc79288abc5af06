import type { ListName } from "@conversation-export/domain";
import type { MessagePageQuery, OpenParquet, Page, Reader } from "@conversation-export/warehouse";
import type { PageRequest } from "./parameters.ts";

/** A list of records that requests read by windows of dates. */
export type ExportList = {
  readonly name: Extract<ListName, "conversations" | "messages">;
  readonly readPage: (
    reader: Reader,
    filter: PageRequest["filter"],
    query: MessagePageQuery,
  ) => Promise<Page>;
  readonly openParquet: (
    reader: Reader,
    filter: PageRequest["filter"],
    query: Pick<MessagePageQuery, "clientId" | "since" | "to" | "conversationId">,
  ) => OpenParquet;
};

export const CONVERSATIONS: ExportList = {
  name: "conversations",
  readPage: (reader, filter, query) =>
    filter === "created" ? reader.conversationsByCreation(query) : reader.conversationsByUpdate(query),
  openParquet: (reader, filter, query) => reader.parquet.conversations({ ...query, filter }),
};

export const MESSAGES: ExportList = {
  name: "messages",
  readPage: (reader, _filter, query) => reader.messagesByCreation(query),
  openParquet: (reader, _filter, query) => reader.parquet.messages(query),
};
