export {
  type DataSubject,
  type DataSubjectRequestBody,
  dataSubjectOf,
  dataSubjectRequestSchema,
  FINISHED_STATUSES,
  REQUEST_STATUSES,
  type RequestStatus,
  namesOf,
  subjectText,
  MAX_NAMES,
} from "./contract/data-subject-request.ts";
export {
  type DeadLetterFacts,
  deadLetterOf,
  deadLetterTopic,
  replayHeaders,
  replaysOf,
} from "./event/dead-letter.ts";
export { envelopeSchema } from "./event/envelope.ts";
export { type BusHeader, type BusHeaders, headerText } from "./event/headers.ts";
export { arrivalHeaders, arrivalTimeOf, busPositionOf } from "./event/bus-position.ts";
export { expiryDateOf, type ExportRecord } from "./kinds/export-record.ts";
export type { ColumnValue, OwnColumn } from "./kinds/record-form.ts";
export type { HandoffEntry } from "./kinds/handoffs.ts";
export {
  createView,
  LEGACY_VERSIONS,
  type LegacyVersion,
  type View,
} from "./record/legacy-view.ts";
export {
  REJECTION_REASONS,
  type Rejected,
  type RejectionReason,
  rejected,
} from "./event/outcome.ts";
export {
  type ChangePosition,
  decodeChangePosition,
  DELETIONS_KEPT_DAYS,
  encodeChangePosition,
  isExpiredPosition,
  signedChange,
} from "./contract/change-cursor.ts";
export {
  type CursorScope,
  decodePosition,
  encodePosition,
  signedText,
} from "./contract/page-cursor.ts";
export {
  type Accepted,
  type BusEvent,
  type Outcome,
  processEvent,
} from "./event/process-event.ts";
export {
  byDatedList,
  byEventType,
  byList,
  byRecordTable,
  CONVERSATION_KIND,
  DATED_KINDS,
  type DatedKind,
  type DatedList,
  EVENT_TYPES,
  type EventType,
  KIND_NAMES,
  KIND_OF,
  LEGACY_FIELDS,
  type LegacyList,
  LIST_NAMES,
  LIST_SCOPES,
  type ListName,
  listsByTopic,
  OWN_TABLE_OF,
  ownTableOf,
  PERSON_KINDS,
  personsOf,
  READABLE_FIRST,
  RECORD_KINDS,
  RECORD_TABLES,
  type RecordKind,
  type RecordTable,
  type RecordTableFacts,
  TABLE_FACTS,
  TABLES_OF,
  type Topics,
  typesByTopic,
  UNDATED_KINDS,
} from "./kinds/record-kinds.ts";
export { MAX_DEPTH } from "./json/json-object.ts";
export { parseExactly, repeatedKeys } from "./json/json-text.ts";
export { hasSchemaPrefix, readMessage, withoutSchemaPrefix } from "./event/read-message.ts";
export { type Column, columnsOf, type ColumnType } from "./record/record-columns.ts";
export {
  handoffVersion,
  rightRowsOf,
  type RightRow,
  type RowKey,
  type StoredRow,
  versionNumber,
} from "./rows/record-rows.ts";
export { correctionOf } from "./rows/row-correction.ts";
export { LINK_BOUNDS, type LinkBounds } from "./contract/link-bounds.ts";
export { formatRateWindows, parseRateWindows, type RateWindow } from "./contract/rate-windows.ts";
export {
  CAMPAIGN_KEY,
  LANGUAGE_TAG,
  SMS_TRIGGER_TYPE,
  type SmsTrigger,
  type SmsTriggerEvent,
  smsTriggerBusKey,
  smsTriggerEvent,
  smsTriggerEventSchema,
  smsTriggerSchema,
} from "./contract/sms-trigger.ts";
export { EMAIL_BLANKS, emailForm } from "./contract/email-form.ts";
export { subjectOf, subjectsOf } from "./contract/subjects.ts";
export {
  END_OF_TIME,
  formatTimestamp,
  formatTimestampZ,
  isAcceptedInstant,
  MICROS_IN_DAY,
  MICROS_IN_SECOND,
  type Micros,
  monthOf,
  parseTimestamp,
} from "./event/timestamp.ts";
export type { Version } from "./event/version.ts";
export type {
  SuppressedClient,
  Suppression,
  SuppressionKey,
  SuppressionReads,
  TakeHash,
  WriteTicket,
} from "./rows/suppressions.ts";
export {
  type FoundCount,
  type UploadWindow,
  updateWindows,
  waitsForCompaction,
  WINDOW_STATES,
  WINDOW_TABLES,
  type WindowCount,
  type WindowState,
  type WindowTable,
} from "./rows/upload-windows.ts";
