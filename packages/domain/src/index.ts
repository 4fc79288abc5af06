export {
  type DataSubject,
  type DataSubjectRequestBody,
  dataSubjectOf,
  dataSubjectRequestSchema,
  REQUEST_STATUSES,
  type RequestStatus,
  type SubjectIdentifier,
  subjectText,
} from "./data-subject-request.ts";
export { type DeadLetterFacts, deadLetterOf, deadLetterTopic, replayHeaders } from "./dead-letter.ts";
export { type BusHeader, type BusHeaders, envelopeSchema, EVENT_TYPES, type EventType } from "./envelope.ts";
export { busPositionOf } from "./bus-position.ts";
export type { HandoffEntry, TargetKind } from "./handoffs.ts";
export {
  createView,
  LEGACY_FIELDS,
  LEGACY_VERSIONS,
  type LegacyList,
  type LegacyVersion,
  type View,
} from "./legacy-view.ts";
export {
  IGNORED_REASONS,
  type Ignored,
  REJECTION_REASONS,
  type Rejected,
  type RejectionReason,
  rejected,
} from "./outcome.ts";
export {
  type CursorPosition,
  type CursorScope,
  decodePosition,
  encodePosition,
  signedText,
} from "./page-cursor.ts";
export {
  type Accepted,
  type BusEvent,
  type ConversationRecord,
  type EndUserRecord,
  type ExportRecord,
  type MessageRecord,
  type Outcome,
  processEvent,
} from "./process-event.ts";
export { publicConversation, publicEndUser, publicMessage } from "./public-schemas.ts";
export {
  handoffVersion,
  RECORD_TABLES,
  type RecordTable,
  rightRowsOf,
  type RightRow,
  type RowKey,
  type StoredRow,
  TABLES_OF,
  versionNumber,
} from "./record-rows.ts";
export { type Correction, correctionOf, type KnownRecord } from "./row-correction.ts";
export { formatRateWindows, parseRateWindows, type RateWindow } from "./rate-windows.ts";
export { conversationSchema, endUserSchema, messageSchema } from "./schemas.ts";
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
} from "./sms-trigger.ts";
export { EMAIL_BLANKS, emailForm } from "./email-form.ts";
export { subjectOf, subjectsOf } from "./subjects.ts";
export {
  END_OF_TIME,
  formatTimestamp,
  formatTimestampZ,
  isAcceptedInstant,
  type Micros,
  monthOf,
  parseTimestamp,
} from "./timestamp.ts";
export { type BusPosition, compareVersions, type Version } from "./version.ts";
export { decideMerge, type MergeDecision, type PartitionFacts } from "./merge-decision.ts";
export {
  type UploadWindow,
  updateWindows,
  waitsForCompaction,
  WINDOW_STATES,
  WINDOW_TABLES,
  type WindowChanges,
  type WindowCount,
  type WindowState,
  type WindowTable,
} from "./upload-windows.ts";
