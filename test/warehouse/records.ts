import {
  type ExportRecord,
  type EventType,
  formatTimestamp,
  processEvent,
} from "@conversation-export/domain";

/** 2026-10-04T00:00:00Z in µs. */
export const DAY_0 = 1_791_072_000_000_000;
export const SECOND = 1_000_000;
export const DAY = 86_400 * SECOND;

export type Attributes = {
  readonly client: string;
  /** µs: the version of the record */
  readonly time: number;
  readonly offset?: number;
  readonly partition?: number;
};

function processed(type: EventType, id: unknown, attributes: Attributes, data: unknown): ExportRecord {
  const { client, time, offset = 0, partition = 0 } = attributes;
  const event = {
    specversion: "1.0",
    id: "e",
    source: "test",
    type,
    time: formatTimestamp(time),
    subject: id,
    clientid: client,
    data,
  };
  const position = { partition, offset };
  const outcome = processEvent({ text: JSON.stringify(event), headers: {}, position }, type);
  if (outcome.kind !== "accepted") throw new Error(`${outcome.kind} ${JSON.stringify(outcome)}`);
  return outcome.record;
}

/** `created` and `updated` in µs. */
export function conversation(
  attributes: Attributes,
  id: string,
  created: number,
  updated: number,
  data: Record<string, unknown> = {},
): ExportRecord {
  const record = processed("conversation.exported", id, attributes, {
    _id: id,
    date_created: formatTimestamp(created),
    date_updated: formatTimestamp(updated),
    ...data,
  });
  return record;
}

export function message(
  attributes: Attributes,
  id: string,
  created: number,
  conversationId: string,
  data: Record<string, unknown> = {},
): ExportRecord {
  const record = processed("message.exported", id, attributes, {
    _id: id,
    date_created: formatTimestamp(created),
    conversation_id: conversationId,
    ...data,
  });
  return record;
}

export function endUser(
  attributes: Attributes,
  id: string,
  data: Record<string, unknown> = {},
): ExportRecord {
  const created = { end_user_id: id, created_at: formatTimestamp(DAY_0) };
  return processed("end_user.exported", id, attributes, { ...created, ...data });
}

/** Without references among the handoffs. */
export function publicText(
  record: ExportRecord,
  uploadedAt: number = DAY_0,
  handoffs: readonly string[] = [],
): string {
  const text = record.beforeUpload + formatTimestamp(uploadedAt) + record.afterUpload;
  return record.type === "conversation.exported"
    ? `${text}[${handoffs.filter((entry) => entry !== "").join(",")}]${record.tail}`
    : text;
}
