import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";
import type { HandoffEntry } from "./handoffs.ts";
import type { ColumnValue } from "./record-form.ts";
import { type EventType, KIND_OF } from "./record-kinds.ts";

/**
 * Public JSON: `beforeUpload`, upload time (32 characters, set when the batch leaves), `afterUpload`, handoffs, `tail`;
 * without upload time all in `beforeUpload`.
 */
export type ExportRecord = {
  readonly type: EventType;
  readonly clientId: string;
  readonly id: string;
  /** Empty: none. */
  readonly conversationId: string;
  readonly dateCreated: Micros;
  /** That of creation if the kind has no other. */
  readonly dateUpdated: Micros;
  readonly version: Version;
  /** In the order of the kind's own columns. */
  readonly columns: readonly ColumnValue[];
  readonly beforeUpload: string;
  readonly afterUpload: string | null;
  /** Only of conversations. */
  readonly handoffs: readonly HandoffEntry[];
  readonly tail: string;
};

/** The date that retention compares. */
export const expiryDateOf = (record: ExportRecord): Micros => record[KIND_OF[record.type].expiresBy];
