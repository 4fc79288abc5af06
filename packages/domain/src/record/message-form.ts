import { formatTimestamp } from "../event/timestamp.ts";
import { hasKnownShape } from "./message-shape.ts";
import { MESSAGE_AFTER_UPLOAD, MESSAGE_BEFORE_UPLOAD, MESSAGE_FIELDS } from "./record-fields.ts";
import type { RecordForm } from "./record-form.ts";
import { RECORD_KINDS } from "./record-kinds.ts";
import { fieldGroup } from "./render.ts";
import { type MessageData, messageSchema } from "./schemas.ts";

const BEFORE_UPLOAD = fieldGroup(MESSAGE_BEFORE_UPLOAD, messageSchema);
const AFTER_UPLOAD = fieldGroup(MESSAGE_AFTER_UPLOAD, messageSchema);

const READS = [
  "_id",
  "conversation_id",
  "date_created",
  "message_data",
  "chatter_id",
  "sender",
  "recipient",
  "answer_id",
  "in_response_to",
  "link_was_clicked",
  "review",
] as const satisfies readonly (keyof MessageData)[];
type Read = (typeof READS)[number];

const NOTHING_NONSTANDARD: readonly string[] = [];

function nonstandardOf(data: Pick<MessageData, Read>): readonly string[] {
  const review = data.review ?? 0;
  const messageData = data.message_data ?? null;
  const reviewFits = review >= 0 && review <= 5;
  const shapeFits = messageData === null || hasKnownShape(messageData);
  if (reviewFits && shapeFits) return NOTHING_NONSTANDARD;
  return [...(reviewFits ? [] : ["review"]), ...(shapeFits ? [] : ["message_data"])];
}

/** A message (specification, sections 2.2 and 2.3). */
export const messageForm: RecordForm<MessageData, Read> = {
  schema: messageSchema,
  fields: MESSAGE_FIELDS,
  reads: READS,
  idOf: ({ _id }) => _id,
  created: { name: "date_created", of: (data) => data.date_created },
  updated: null,
  finish(data, draft) {
    const dates = { date_created: formatTimestamp(draft.dateCreated) };
    const messageType = data.message_data?.["_type"];
    const record = {
      type: RECORD_KINDS.message.type,
      clientId: draft.clientId,
      id: draft.id,
      conversationId: data.conversation_id,
      dateCreated: draft.dateCreated,
      version: draft.version,
      beforeUpload: `{${draft.render(BEFORE_UPLOAD, dates)},"record_last_updated":"`,
      afterUpload: `",${draft.render(AFTER_UPLOAD, dates)}}`,
      columns: {
        chatterId: data.chatter_id ?? "",
        sender: data.sender ?? "",
        recipient: data.recipient ?? "",
        messageType: typeof messageType === "string" ? messageType : "",
        answerId: data.answer_id ?? "",
        inResponseTo: data.in_response_to ?? "",
        linkWasClicked: data.link_was_clicked ?? null,
        review: data.review ?? null,
      },
    };
    return { record, nonstandard: nonstandardOf(data) };
  },
};
