import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";
import type { HandoffEntry } from "./handoffs.ts";
import type { ColumnValue } from "./record-form.ts";
import { type EventType, KIND_OF } from "./record-kinds.ts";

/**
 * The public JSON around its upload time, which is known only when the batch leaves: `beforeUpload` + 32
 * characters + `afterUpload` (+ handoffs + `tail`). Records without an upload time are in `beforeUpload`.
 */
export type ExportRecord = {
  readonly type: EventType;
  readonly clientId: string;
  readonly id: string;
  /** Empty: it belongs to no conversation. */
  readonly conversationId: string;
  readonly dateCreated: Micros;
  /** That of creation where the kind has no other. */
  readonly dateUpdated: Micros;
  readonly version: Version;
  /** Values of the own columns of its kind, in their order. */
  readonly columns: readonly ColumnValue[];
  readonly beforeUpload: string;
  readonly afterUpload: string | null;
  /** Of conversations, else empty. */
  readonly handoffs: readonly HandoffEntry[];
  readonly tail: string;
};

/** The date that a client's retention compares: that of creation, of an end user that of the last update. */
export const expiryDateOf = (record: ExportRecord): Micros => record[KIND_OF[record.type].expiresBy];
