export { LIMIT_NAMES, type LimitName, type Scope, SCOPES } from "./access/access.ts";
export {
  type AuditEntry,
  type AuditNote,
  type AuditStore,
  type LastChange,
  createAuditStore,
} from "./access/audit-store.ts";
export {
  type Grant,
  grantsOf,
  SERVICE_USERS,
  WAREHOUSE_USERS,
  type WarehouseUser,
} from "./access/grants.ts";
export { FIXED_SETTINGS } from "./analytics/fixed-settings.ts";
export type { ClientUser } from "./analytics/client-users.ts";
export { CLIENT_USER } from "./analytics/left-out-sql.ts";
export {
  UNOPTIMIZED,
  VIEW_LIMITS,
  viewProfile,
  viewProfileSql,
  viewProfileXml,
} from "./analytics/view-profiles.ts";
export { PINNED_SETTINGS } from "./session/pinned-settings.ts";
export { ANALYTICS_VIEWS, analyticsDatabase, type AnalyticsView } from "./analytics/views.ts";
export { type Batch, createBatch, type TableInsert } from "./write/batch.ts";
export { type CampaignRow, type CampaignStore, createCampaignStore } from "./access/campaign-store.ts";
export {
  type ClientRow,
  type ClientStore,
  createClientStore,
  type KeyRow,
} from "./access/client-store.ts";
export { awaitAnswer } from "./session/connection.ts";
export { createSession, type Session } from "./session/session.ts";
export { emailFormSql } from "./access/email-form-sql.ts";
export { createDeletion } from "./upkeep/deletion.ts";
export { insertHalves, isRefusedData, refusedInHalves } from "./write/insert-halves.ts";
export { headersOfLanding } from "./tables/landing.ts";
export {
  createLandingStore,
  type LandingCoverage,
  type LandingStore,
} from "./upkeep/backfill/landing-store.ts";
export {
  type ChangedSetting,
  createInspector,
  type Inspector,
  type ReplicaCounts,
  type ReplicaState,
  type UserQuota,
} from "./schema/inspector.ts";
export {
  createVersionReader,
  type VersionReader,
} from "./schema/schema-states.ts";
export { migrate } from "./schema/migrate.ts";
export { onCluster, renderMigration, type Topology } from "./schema/migration-template.ts";
export type {
  ApiClient,
  ChangePage,
  ChangeQuery,
  EndUserPage,
  EndUserQuery,
  ListStep,
  ListSteps,
  MessagePageQuery,
  OpenStep,
  Page,
  PageEnd,
  PagePosition,
  PageQuery,
  Reader,
  Streamed,
} from "./pages/page.ts";
export { PARQUET_SETTINGS, type PageStatement, pageStatement } from "./pages/page-statements.ts";
export { MESSAGES_OF_CONVERSATION } from "./pages/sql/conversation-messages-sql.ts";
export { noteDeleted, type RunUpload } from "./changes/deletion-entries.ts";
export { createMovedDates, type MovedDates } from "./changes/moved-dates.ts";
export {
  createStableStore,
  type Stable,
  type StableReader,
  type StableStore,
} from "./changes/stable-store.ts";
export { createReader } from "./pages/reader.ts";
export { typedColumns } from "./parquet/column-sql.ts";
export {
  createReconcileStore,
  type ComparedOffset,
  type ReconciledUntil,
  type ReconcileStore,
} from "./upkeep/reconcile-store.ts";
export {
  countReplayed,
  createReplayStore,
  type DeadLetterIdentity,
  deadLetterKey,
  type Replay,
  type ReplayStore,
} from "./upkeep/backfill/replay-store.ts";
export type { DataSubjectRequest } from "./access/request-rows.ts";
export {
  createRequestStore,
  type RequestPlace,
  type RequestStore,
  type RequestSummary,
  type RequestUsage,
} from "./access/request-store.ts";
export { RETENTION_TABLES } from "./upkeep/expired-rows.ts";
export {
  createRetentionStore,
  type Cutoff,
  type Expired,
  groupsOfCutoffs,
  type RetentionStore,
} from "./upkeep/retention-store.ts";
export {
  isAwayError,
  isLimitError,
  isSetupError,
  WarehouseError,
} from "./session/warehouse-error.ts";
export {
  createUnregisteredClientStore,
  type UnregisteredClient,
  type UnregisteredClientStore,
} from "./access/unregistered-clients.ts";
export {
  createWatermarkStore,
  type TopicIdentity,
  type WatermarkReader,
  type Watermarks,
  type WatermarkStore,
} from "./pages/watermark-store.ts";
export { createWriter, type Writer } from "./write/writer.ts";
export {
  type CleanupShare,
  createSupersededEntries,
  type SupersededEntries,
} from "./upkeep/compaction/superseded-entries.ts";
export { createPartCounts, type PartCount, type PartCounts } from "./upkeep/compaction/part-counts.ts";
export { createWindowStore, type WindowStore } from "./upkeep/compaction/window-store.ts";
export {
  createSuppressionStore,
  type SuppressionStore,
} from "./upkeep/erasure/suppression-store.ts";
export {
  type Coordination,
  createCoordination,
  UNKNOWN_REDIS,
} from "./write/coordination.ts";
export { createInFlight, type InFlight } from "./write/in-flight.ts";
export { isStaleTicket } from "./write/write-ticket.ts";
export type { LandingSelection } from "./upkeep/backfill/landing-selection.ts";
export { createRecordReader, type RecordReader, recordKey } from "./upkeep/backfill/record-reader.ts";
export {
  type BackfillRuns,
  createBackfillRuns,
  type HashedRecord,
  hashKey,
  type LandedEvent,
} from "./upkeep/backfill/backfill-runs.ts";
export { type HashRange, hashRanges } from "./upkeep/backfill/hash-range.ts";
export { rowDigest } from "./tables/row-digest.ts";
export { createRightRows, type RightRows } from "./upkeep/backfill/right-rows.ts";
export {
  BACKFILL_RUN,
  createWrongRows,
  type WrongRow,
  type WrongRows,
} from "./upkeep/backfill/wrong-rows.ts";
export type { DeletingRun, ErasureRun, ErasureSubject } from "./upkeep/erasure/erasure-keys.ts";
export {
  createErasurePreview,
  createErasureStore,
  type ErasureStore,
} from "./upkeep/erasure/erasure-store.ts";
export { type DueRequest, subjectsOfRequest } from "./upkeep/erasure/request-subjects.ts";
export {
  createRequestCompletion,
  type OpenRequests,
  type RequestCompletion,
} from "./upkeep/erasure/request-completion.ts";
