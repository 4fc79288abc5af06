import { type ListName, RECORD_KINDS } from "@conversation-export/domain";
import * as examples from "../openapi/examples.ts";

/** What the operations of a list have in common, whatever their envelopes and formats. */
export const LISTS = {
  conversations: {
    kind: "conversation",
    scope: "export",
    noun: "Conversations",
    id: "_id",
    record: RECORD_KINDS.conversation.public,
    example: examples.CONVERSATION,
  },
  messages: {
    kind: "message",
    scope: "export",
    noun: "Messages",
    id: "_id",
    record: RECORD_KINDS.message.public,
    example: examples.MESSAGE,
  },
  end_users: {
    kind: "end_user",
    scope: "end_users",
    noun: "EndUsers",
    id: "end_user_id",
    record: RECORD_KINDS.end_user.public,
    example: examples.END_USER,
  },
} as const satisfies Record<ListName, object>;

/** The lists that are read by windows of dates. */
export const WINDOW_LISTS = ["conversations", "messages"] as const satisfies readonly ListName[];
export type WindowList = (typeof WINDOW_LISTS)[number];
