export { createClient } from "./client.ts";
export type { ChangesOptions, Client, EndUsersOptions } from "./client.ts";
export type { ClientOptions } from "./http/caller.ts";
export { ExportAnswerError, ExportApiError, ExportConnectionError } from "./http/errors.ts";
export type { ErrorType } from "./http/errors.ts";
export type { RetryNote, RetryOptions } from "./http/retry.ts";
export type { Changes } from "./lists/changes.ts";
export type { DeletionOf, ListName, RecordOf, WindowOf } from "./lists/kinds.ts";
export type { ChangesTrailer, Trailer } from "./lists/line-blocks.ts";
export type {
  ConversationWindow,
  CreatedWindow,
  Instant,
  MessageWindow,
  UpdatedWindow,
} from "./lists/windows.ts";
export type {
  Conversation,
  DataSubjectRequest,
  DataSubjectRequestEntry,
  DataSubjectRequestStatus,
  DeletedEndUser,
  DeletedRecord,
  EndUser,
  Message,
  SmsTrigger,
} from "./interface/types.ts";
