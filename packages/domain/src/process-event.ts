import type { z } from "zod";
import {
  badTimestamp,
  type BusHeaders,
  type Envelope,
  type EventType,
  firstProblem,
  readEnvelope,
} from "./envelope.ts";
import { type HandoffEntry, mergeHandoffs } from "./handoffs.ts";
import { needsExactText } from "./json-text.ts";
import { hasKnownShape } from "./message-shape.ts";
import { note } from "./noted-names.ts";
import { type Ignored, type Rejected, rejected } from "./outcome.ts";
import {
  CONVERSATION_AFTER_HANDOFFS,
  CONVERSATION_BEFORE_HANDOFFS,
  CONVERSATION_BEFORE_UPLOAD,
  CONVERSATION_FIELDS,
  END_USER_FIELDS,
  MESSAGE_AFTER_UPLOAD,
  MESSAGE_BEFORE_UPLOAD,
  MESSAGE_FIELDS,
} from "./record-fields.ts";
import { type FieldGroup, fieldGroup, fieldTexts } from "./render.ts";
import {
  type ConversationData,
  conversationSchema,
  type EndUserData,
  endUserSchema,
  type MessageData,
  messageSchema,
} from "./schemas.ts";
import { formatTimestamp, isAcceptedInstant, type Micros, parseTimestamp } from "./timestamp.ts";
import { type UnknownFields, unknownFieldsBeside } from "./unknown-fields.ts";
import type { BusPosition, Version } from "./version.ts";

type RecordBase = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  readonly version: Version;
};

/**
 * The public JSON around the instant of upload, which is known only when the batch leaves:
 * `beforeUpload` + 32 characters of timestamp + `afterUpload` (+ handoffs array + `tail` for a conversation).
 */
export type ConversationRecord = RecordBase & {
  readonly type: "conversation.exported";
  readonly dateUpdated: Micros;
  readonly beforeUpload: string;
  readonly afterUpload: string;
  readonly tail: string;
  readonly handoffs: readonly HandoffEntry[];
  readonly columns: {
    readonly chatterId: string;
    readonly endUserId: string;
    readonly language: string;
    readonly platform: string;
    readonly device: string;
    readonly browser: string;
    readonly resolution: string;
    readonly topicLabel: string;
    readonly lastAgentId: string;
    readonly isEngaged: boolean | null;
    readonly isEscalated: boolean | null;
    readonly isTestUser: boolean | null;
    readonly agentHandleTime: number | null;
    readonly botHandleTime: number | null;
    readonly csatScore: number | null;
  };
};

export type MessageRecord = RecordBase & {
  readonly type: "message.exported";
  readonly conversationId: string;
  readonly beforeUpload: string;
  readonly afterUpload: string;
  readonly columns: {
    readonly chatterId: string;
    readonly sender: string;
    readonly recipient: string;
    readonly messageType: string;
    readonly answerId: string;
    readonly inResponseTo: string;
    readonly linkWasClicked: boolean | null;
    readonly review: number | null;
  };
};

export type EndUserRecord = RecordBase & {
  readonly type: "end_user.exported";
  readonly dateUpdated: Micros;
  readonly record: string;
  /** The IDs that other systems know the person by: the values of `profile.system_properties`. */
  readonly externalIds: readonly string[];
  readonly email: string;
};

export type ExportRecord = ConversationRecord | MessageRecord | EndUserRecord;

export type Accepted = {
  readonly kind: "accepted";
  readonly record: ExportRecord;
  /** Fields that the specification does not know, as paths of names: dropped, to be counted; at most 20. */
  readonly unknownFields: readonly string[];
  /** Fields with a value outside the documented set, kept, to be counted; at most 20. */
  readonly unusual: readonly string[];
};

export type Outcome = Accepted | Rejected | Ignored;

/** One message of the bus. `text` is the value as UTF-8 text; null stands for no value. */
export type BusEvent = {
  readonly text: string | null;
  readonly headers: BusHeaders;
  readonly position: BusPosition;
  /** A later `time` is refused: it would freeze the record. µs since the epoch. */
  readonly latestTime?: Micros;
};

const NO_FIELDS: readonly string[] = [];

const CONVERSATION_UNKNOWN = unknownFieldsBeside(CONVERSATION_FIELDS);
const MESSAGE_UNKNOWN = unknownFieldsBeside(MESSAGE_FIELDS);
const END_USER_UNKNOWN = unknownFieldsBeside(END_USER_FIELDS);

function namesFrom(find: UnknownFields, data: Record<string, unknown>): readonly string[] {
  const names: string[] = [];
  find(data, names);
  return names;
}

function readDate(value: string, field: string): Micros | Rejected {
  const instant = parseTimestamp(value);
  if (instant === undefined) return badTimestamp(value, field, "invalid_timestamp");
  return isAcceptedInstant(instant) ? instant : rejected("date_out_of_range", field);
}

function invalid(error: z.ZodError): Rejected {
  return rejected("invalid_record", firstProblem(error));
}

function subjectMismatch(envelope: Envelope, id: string): Rejected | undefined {
  return envelope.subject === null || envelope.subject === id
    ? undefined
    : rejected("subject_mismatch", "subject is not the id of the record");
}

const RESOLUTIONS: ReadonlySet<unknown> = new Set(["Resolved", "Not Resolved", null, undefined]);

function unusualOfConversation(data: ConversationData, ofHandoffs: readonly string[]): readonly string[] {
  const unusual: string[] = [];
  if (!RESOLUTIONS.has(data.automated_resolution_classification)) {
    note(unusual, "automated_resolution_classification");
  }
  for (const { intents } of data.classifications ?? []) {
    for (const { status } of intents ?? []) {
      if ((status ?? "active") !== "active") note(unusual, "classifications.intents.status");
    }
  }
  for (const name of ofHandoffs) note(unusual, name);
  return unusual;
}

function unusualOfMessage(data: MessageData): readonly string[] {
  const review = data.review ?? 0;
  const messageData = data.message_data ?? null;
  const reviewFits = review >= 0 && review <= 5;
  const shapeFits = messageData === null || hasKnownShape(messageData);
  if (reviewFits && shapeFits) return NO_FIELDS;
  return [...(reviewFits ? [] : ["review"]), ...(shapeFits ? [] : ["message_data"])];
}

type Context = { readonly envelope: Envelope; readonly version: Version; readonly exact: boolean };

const BEFORE_UPLOAD = fieldGroup(CONVERSATION_BEFORE_UPLOAD);
const BEFORE_HANDOFFS = fieldGroup(CONVERSATION_BEFORE_HANDOFFS);
const AFTER_HANDOFFS = fieldGroup(CONVERSATION_AFTER_HANDOFFS);
const MESSAGE_HEAD = fieldGroup(MESSAGE_BEFORE_UPLOAD);
const MESSAGE_TAIL = fieldGroup(MESSAGE_AFTER_UPLOAD);
const END_USER = fieldGroup(END_USER_FIELDS);

function renderer(context: Context, dates: Record<string, string>): (group: FieldGroup) => string {
  const { envelope, exact } = context;
  if (!exact) return (group) => group.fromValues(envelope.data, dates);
  const members = fieldTexts(envelope.dataText());
  return (group) => group.fromText(members, dates);
}

function conversationRecord(context: Context): Outcome {
  const { envelope, version } = context;
  const checked = conversationSchema.safeParse(envelope.data);
  if (!checked.success) return invalid(checked.error);
  const data = checked.data;
  const mismatch = subjectMismatch(envelope, data._id);
  if (mismatch !== undefined) return mismatch;
  const dateCreated = readDate(data.date_created, "date_created");
  if (typeof dateCreated !== "number") return dateCreated;
  const dateUpdated = readDate(data.date_updated ?? data.date_created, "date_updated");
  if (typeof dateUpdated !== "number") return dateUpdated;
  const handoffs = mergeHandoffs(data.handoffs);
  if (handoffs.kind === "rejected") return handoffs;
  const render = renderer(context, {
    date_created: formatTimestamp(dateCreated),
    date_updated: formatTimestamp(dateUpdated),
  });
  const score = data.csat?.["score"];
  const record: ConversationRecord = {
    type: "conversation.exported",
    clientId: envelope.clientId,
    id: data._id,
    dateCreated,
    dateUpdated,
    version,
    beforeUpload: `{${render(BEFORE_UPLOAD)},"record_last_updated":"`,
    afterUpload: `",${render(BEFORE_HANDOFFS)},"handoffs":`,
    tail: `,${render(AFTER_HANDOFFS)}}`,
    handoffs: handoffs.entries,
    columns: {
      chatterId: data.chatter_id ?? "",
      endUserId: data.end_user_id ?? "",
      language: data.language ?? "",
      platform: data.platform ?? "",
      device: data.device ?? "",
      browser: data.browser ?? "",
      resolution: data.automated_resolution_classification ?? "",
      topicLabel: data.generated_topic_label ?? "",
      lastAgentId: data.last_agent_id ?? "",
      isEngaged: data.is_engaged ?? null,
      isEscalated: data.is_escalated ?? null,
      isTestUser: data.is_test_user ?? null,
      agentHandleTime: data.agent_handle_time ?? null,
      botHandleTime: data.bot_handle_time ?? null,
      csatScore: typeof score === "number" ? score : null,
    },
  };
  return {
    kind: "accepted",
    record,
    unknownFields: namesFrom(CONVERSATION_UNKNOWN, envelope.data),
    unusual: unusualOfConversation(data, handoffs.unusual),
  };
}

function messageRecord(context: Context): Outcome {
  const { envelope, version } = context;
  const checked = messageSchema.safeParse(envelope.data);
  if (!checked.success) return invalid(checked.error);
  const data = checked.data;
  const mismatch = subjectMismatch(envelope, data._id);
  if (mismatch !== undefined) return mismatch;
  const dateCreated = readDate(data.date_created, "date_created");
  if (typeof dateCreated !== "number") return dateCreated;
  const render = renderer(context, { date_created: formatTimestamp(dateCreated) });
  const messageType = data.message_data?.["_type"];
  const record: MessageRecord = {
    type: "message.exported",
    clientId: envelope.clientId,
    id: data._id,
    conversationId: data.conversation_id,
    dateCreated,
    version,
    beforeUpload: `{${render(MESSAGE_HEAD)},"record_last_updated":"`,
    afterUpload: `",${render(MESSAGE_TAIL)}}`,
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
  const unknownFields = namesFrom(MESSAGE_UNKNOWN, envelope.data);
  return { kind: "accepted", record, unknownFields, unusual: unusualOfMessage(data) };
}

function externalIdsOf(profile: EndUserData["profile"]): string[] {
  const ids: string[] = [];
  for (const value of Object.values(profile?.system_properties ?? {})) {
    if (typeof value === "string" || typeof value === "number") ids.push(String(value));
  }
  return ids;
}

function endUserRecord(context: Context): Outcome {
  const { envelope, version } = context;
  const checked = endUserSchema.safeParse(envelope.data);
  if (!checked.success) return invalid(checked.error);
  const data = checked.data;
  const mismatch = subjectMismatch(envelope, data.end_user_id);
  if (mismatch !== undefined) return mismatch;
  const dateCreated = readDate(data.created_at, "created_at");
  if (typeof dateCreated !== "number") return dateCreated;
  const dateUpdated = readDate(data.updated_at ?? data.created_at, "updated_at");
  if (typeof dateUpdated !== "number") return dateUpdated;
  const render = renderer(context, {
    created_at: formatTimestamp(dateCreated),
    updated_at: formatTimestamp(dateUpdated),
  });
  const record: EndUserRecord = {
    type: "end_user.exported",
    clientId: envelope.clientId,
    id: data.end_user_id,
    dateCreated,
    dateUpdated,
    version,
    record: `{${render(END_USER)}}`,
    externalIds: externalIdsOf(data.profile),
    email: data.profile?.email ?? "",
  };
  const unknownFields = namesFrom(END_USER_UNKNOWN, envelope.data);
  return { kind: "accepted", record, unknownFields, unusual: NO_FIELDS };
}

const RECORD_OF: Readonly<Record<EventType, (context: Context) => Outcome>> = {
  "conversation.exported": conversationRecord,
  "message.exported": messageRecord,
  "end_user.exported": endUserRecord,
};

/**
 * decode, validate, normalise and render in one pass: turns a bus message of a topic that carries `expected`
 * events into a record for the warehouse, or says why it cannot.
 */
export function processEvent(event: BusEvent, expected: EventType): Outcome {
  if (event.text === null) return { kind: "ignored", reason: "null_value" };
  if (event.text === "") return rejected("empty_value", "the message has an empty value");
  const envelope = readEnvelope(event.text, event.headers);
  if ("kind" in envelope) return envelope;
  if (envelope.type !== expected) {
    return rejected("unexpected_type", `type is not ${expected}`);
  }
  if (event.latestTime !== undefined && envelope.exportedAt > event.latestTime) {
    return rejected("time_in_future", "time is later than the bus allows");
  }
  const version: Version = {
    exportedAt: envelope.exportedAt,
    partition: event.position.partition,
    offset: event.position.offset,
  };
  try {
    return RECORD_OF[expected]({ envelope, version, exact: needsExactText(event.text) });
  } catch (error) {
    if (error instanceof RangeError) return rejected("invalid_record", "nested too deeply");
    throw error;
  }
}
