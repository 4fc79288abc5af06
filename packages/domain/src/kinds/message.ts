import { z } from "zod";
import { formatTimestamp } from "../event/timestamp.ts";
import { publicSchema } from "../record/public-schemas.ts";
import { cutBefore, fieldsOf, UPLOAD } from "../record/record-fields.ts";
import { fieldGroup } from "../record/render.ts";
import { flag, freeForm, identifier, instant, personId, text } from "./field-schemas.ts";
import { hasKnownShape } from "./message-shape.ts";
import type { RecordForm } from "./record-form.ts";
import type { KindFacts } from "./record-kind.ts";

/** Specification 2.2, 2.3. */
const schema = z.object({
  _id: identifier.describe("ID of the message"),
  answer_id: text.describe(
    "ID of the answer that the message came from; null when the bot did not send it, the text None when a generative bot did",
  ),
  answer_title: text.describe("Title of that answer"),
  chatter_id: personId.describe("ID of the chatter"),
  conversation_id: identifier.describe("ID of the conversation that the message belongs to"),
  date_created: instant.describe("When the message was made"),
  link_was_clicked: flag.describe("Whether the link in the answer was followed"),
  message_data: freeForm.describe(
    "Content of the message. Its form depends on `_type`: greeting, text, picture, quick_replies, trigger, meta, link, web_window, csat_shown or csat; the text is in `body`",
  ),
  recipient: personId.describe("ID of the chatter, or a word for the agent, the bot or the platform"),
  review: z.int32().nullish().describe("Rating of the answer by the chatter, 0 to 5"),
  sender: personId.describe("As for recipient"),
  in_response_to: text.describe(
    "ID of the message that this one answers; the text None when it answers none",
  ),
});

type MessageData = z.infer<typeof schema>;

const [head, rest] = cutBefore(fieldsOf(schema), "review");
const FIELDS = [...head, UPLOAD, ...rest];
const BEFORE_UPLOAD = fieldGroup(head, schema);
const AFTER_UPLOAD = fieldGroup(rest, schema);

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

/** The column is a UInt8. */
const fitting = (review: number | null | undefined): number | null =>
  typeof review === "number" && review >= 0 && review <= 255 ? review : null;

const form: RecordForm<MessageData, Read> = {
  schema,
  fields: FIELDS,
  reads: READS,
  id: { name: "_id", of: ({ _id }) => _id },
  conversationOf: (data) => data.conversation_id,
  created: { name: "date_created", of: (data) => data.date_created },
  updated: null,
  columns: [
    { name: "conversation_id", type: "id", of: (data) => data.conversation_id },
    { name: "chatter_id", type: "text", of: (data) => data.chatter_id, person: "chatter_id" },
    { name: "sender", type: "text", of: (data) => data.sender, person: "chatter_id" },
    { name: "recipient", type: "text", of: (data) => data.recipient, person: "chatter_id" },
    {
      name: "message_type",
      type: "label",
      of: ({ message_data: given }) => (typeof given?.["_type"] === "string" ? given["_type"] : ""),
      comment: "_type of message_data, such as text",
    },
    { name: "answer_id", type: "text", of: (data) => data.answer_id },
    { name: "in_response_to", type: "text", of: (data) => data.in_response_to },
    { name: "link_was_clicked", type: "flag", of: (data) => data.link_was_clicked },
    { name: "review", type: "byte", of: ({ review }) => fitting(review) },
  ],
  finish(data, draft) {
    const dates = { date_created: formatTimestamp(draft.dateCreated) };
    return {
      beforeUpload: `{${draft.render(BEFORE_UPLOAD, dates)},"record_last_updated":"`,
      afterUpload: `",${draft.render(AFTER_UPLOAD, dates)}}`,
      nonstandard: nonstandardOf(data),
    };
  },
};

const LEGACY_V1 = [
  "_id",
  "answer_title",
  "conversation_id",
  "date_created",
  "message_data",
  "recipient",
  "review",
  "sender",
] as const;
const LEGACY_V1_1 = [...LEGACY_V1, "chatter_id"] as const;

export const message = {
  type: "message.exported",
  list: "messages",
  scope: "export",
  number: 2,
  code: "m",
  tables: [
    {
      name: "messages",
      id: "message_id",
      keyDate: "date_created",
      created: "date_created",
      hasProjection: true,
    },
  ],
  texts: ["record"],
  idNames: null,
  expiresBy: "dateCreated",
  form,
  public: publicSchema(FIELDS, schema),
  legacy: {
    v1: LEGACY_V1,
    "v1.1": LEGACY_V1_1,
    "v1.2": [...LEGACY_V1_1, "answer_id", "link_was_clicked"],
  },
} as const satisfies KindFacts;
