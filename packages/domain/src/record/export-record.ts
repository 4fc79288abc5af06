import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";
import type { HandoffEntry } from "./handoffs.ts";
import { KIND_OF, type RECORD_KINDS } from "./record-kinds.ts";

type RecordBase = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  readonly version: Version;
};

/**
 * The public JSON around its upload time, which is known only when the batch leaves: `beforeUpload` + 32
 * characters + `afterUpload` (+ handoffs + `tail`).
 */
export type ConversationRecord = RecordBase & {
  readonly type: typeof RECORD_KINDS.conversation.type;
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
  readonly type: typeof RECORD_KINDS.message.type;
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
  readonly type: typeof RECORD_KINDS.end_user.type;
  readonly dateUpdated: Micros;
  readonly record: string;
  /** The IDs that other systems know the person by: the values of `profile.system_properties`. */
  readonly externalIds: readonly string[];
  readonly email: string;
};

export type ExportRecord = ConversationRecord | MessageRecord | EndUserRecord;

/** The date that a client's retention compares: that of creation, of an end user that of the last update. */
export const expiryDateOf = (record: ExportRecord): Micros =>
  KIND_OF[record.type].expiresBy === "dateUpdated" && "dateUpdated" in record
    ? record.dateUpdated
    : record.dateCreated;
