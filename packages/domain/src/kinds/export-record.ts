import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";
import type { HandoffEntry } from "./handoffs.ts";
import type { ColumnValue } from "./record-form.ts";
import { type EventType, KIND_OF } from "./record-kinds.ts";

/**
 * Public JSON: `beforeUpload`, upload time (32 characters, set when the batch leaves), `afterUpload`, handoffs, `tail`;
 * without upload time all is in `beforeUpload`.
 */
export type ExportRecord = {
  readonly type: EventType;
  readonly clientId: string;
  readonly id: string;
  /** Empty: none. */
  readonly conversationId: string;
  readonly dateCreated: Micros;
  /** Else that of creation. */
  readonly dateUpdated: Micros;
  readonly version: Version;
  readonly columns: readonly ColumnValue[];
  readonly beforeUpload: string;
  readonly afterUpload: string | null;
  readonly handoffs: readonly HandoffEntry[];
  readonly tail: string;
};

export const expiryDateOf = (record: ExportRecord): Micros => record[KIND_OF[record.type].expiresBy];
