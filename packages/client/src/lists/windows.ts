import type { ConversationsQuery, MessagesQuery } from "../interface/types.ts";
import type { DateField } from "./window-blocks.ts";

/** Text: ISO 8601 with an offset. */
export type Instant = string | Date;

/** Without an upper bound: to the present. */
export type CreatedWindow = {
  readonly createdSince: Instant;
  /** Exclusive. */
  readonly createdTo?: Instant;
};
export type UpdatedWindow = {
  readonly updatedSince: Instant;
  /** Exclusive. */
  readonly updatedTo?: Instant;
};
export type ConversationWindow = CreatedWindow | UpdatedWindow;
export type MessageWindow = CreatedWindow & {
  readonly conversationId?: string;
};

/** Otherwise the export API ends a window after seven days. */
const END_OF_TIME = "9999-12-31T00:00:00Z";

const textOf = (instant: Instant): string => (typeof instant === "string" ? instant : instant.toISOString());

/** `field`: the date that the records are ordered by. */
export const windowQuery = (
  window: ConversationWindow | MessageWindow,
): { readonly query: ConversationsQuery | MessagesQuery; readonly field: DateField } => {
  if ("updatedSince" in window && window.updatedSince !== undefined) {
    const { updatedSince, updatedTo = END_OF_TIME } = window;
    return {
      query: { updated_since: textOf(updatedSince), updated_to: textOf(updatedTo) },
      field: "date_updated",
    };
  }
  const { createdSince, createdTo = END_OF_TIME, conversationId } = window as MessageWindow;
  return {
    query: {
      created_since: textOf(createdSince),
      created_to: textOf(createdTo),
      ...(conversationId !== undefined && { conversation_id: conversationId }),
    },
    field: "date_created",
  };
};

export const SINCE = { date_created: "created_since", date_updated: "updated_since" } as const;
