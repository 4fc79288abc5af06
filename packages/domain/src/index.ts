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
export { type BusHeader, type BusHeaders, envelopeSchema, EVENT_TYPES, type EventType } from "./envelope.ts";
export type { HandoffEntry, TargetKind } from "./handoffs.ts";
export {
  createView,
  LEGACY_FIELDS,
  LEGACY_VERSIONS,
  type LegacyList,
  type LegacyVersion,
  type View,
} from "./legacy-view.ts";
export { REJECTION_REASONS, type Rejected, type RejectionReason, rejected } from "./outcome.ts";
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
