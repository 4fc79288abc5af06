export { type BusHeader, type BusHeaders, envelopeSchema, EVENT_TYPES, type EventType } from "./envelope.ts";
export type { HandoffEntry, TargetKind } from "./handoffs.ts";
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
export { conversationSchema, endUserSchema, messageSchema } from "./schemas.ts";
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
