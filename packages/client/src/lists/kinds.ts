import type { FIELDS } from "../interface/fields.ts";
import type { Conversation, DeletedEndUser, DeletedRecord, EndUser, Message } from "../interface/types.ts";
import type { ConversationWindow, MessageWindow } from "./windows.ts";

export type RecordOf = {
  readonly conversations: Conversation;
  readonly messages: Message;
  readonly end_users: EndUser;
};
export type DeletionOf = {
  readonly conversations: DeletedRecord;
  readonly messages: DeletedRecord;
  readonly end_users: DeletedEndUser;
};
export type WindowOf = { readonly conversations: ConversationWindow; readonly messages: MessageWindow };

type Kind<List> = {
  /** First in each line. */
  readonly id: string;
  readonly path: string;
  /** Such a list also comes as lines. */
  readonly hasWindows: List extends keyof WindowOf ? true : false;
  /** Field of `meta`. */
  readonly link: string;
  /** Parameter of the query. */
  readonly size: string;
};

const PAGED = { hasWindows: true, link: "next_page_uri", size: "page_size" } as const;

/** Fields and their types: the generated `fields.ts`. */
export const KINDS = {
  conversations: { id: "_id", path: "/v2/export/conversations", ...PAGED },
  messages: { id: "_id", path: "/v2/export/messages", ...PAGED },
  end_users: {
    id: "end_user_id",
    path: "/v2/end-users/",
    hasWindows: false,
    link: "next_page_url",
    size: "limit",
  },
} as const satisfies { readonly [List in keyof typeof FIELDS]: Kind<List> };

export type ListName = keyof typeof KINDS;
export const LISTS = Object.keys(KINDS) as readonly ListName[];

export const hasWindows = (list: ListName): list is keyof WindowOf => KINDS[list].hasWindows;
