export { LIMIT_NAMES, type LimitName, type Scope, SCOPES } from "./access.ts";
export { type Batch, createBatch, type TableInsert } from "./batch.ts";
export { type CampaignRow, type CampaignStore, createCampaignStore } from "./campaign-store.ts";
export {
  type ClientRow,
  type ClientStore,
  createClientStore,
  type KeyRow,
  type LinkBounds,
} from "./client-store.ts";
export { awaitAnswer } from "./connection.ts";
export { emailFormSql } from "./email-form-sql.ts";
export { createDeletion, type Deletion, type RowSelection } from "./deletion.ts";
export { insertHalves } from "./insert-halves.ts";
export { headersOfLanding, type LandingEvent } from "./landing-rows.ts";
export { createLandingStore, type LandingCoverage, type LandingStore } from "./landing-store.ts";
export {
  createInspector,
  type CrowdedPartition,
  type Disk,
  type Inspector,
  type SchemaState,
  type ServerClock,
  type StuckMutation,
} from "./inspector.ts";
export { type MigrationState, migrate } from "./migrate.ts";
export { renderMigration, type Topology } from "./migration-template.ts";
export type {
  ApiClient,
  EndUserPage,
  EndUserQuery,
  LineQuery,
  MessagePageQuery,
  Page,
  PagePosition,
  PageQuery,
  Reader,
  WindowLines,
} from "./page.ts";
export {
  conversationsByCreationStatement,
  createReader,
  messagesOfConversationStatement,
  type PageStatement,
} from "./reader.ts";
export {
  type CarriedExport,
  createReconcileStore,
  type ReconciledUntil,
  type ReconcileStore,
} from "./reconcile-store.ts";
export {
  createReplayStore,
  type LetterIdentity,
  letterKey,
  type Replay,
  type ReplayStore,
} from "./replay-store.ts";
export { createRequestStore, type DataSubjectRequest, type RequestStore } from "./request-store.ts";
export {
  createRetentionStore,
  type Cutoff,
  type Expired,
  RETENTION_TABLES,
  type RetentionStore,
  type RetentionTable,
} from "./retention-store.ts";
export { isAwayError, isSetupError, WarehouseError, type WarehouseErrorCode } from "./warehouse-error.ts";
export {
  createWatermarkReader,
  createWatermarkWriter,
  LIST_NAMES,
  type ListName,
  type WatermarkReader,
  type Watermarks,
  type WatermarkWriter,
} from "./watermark-store.ts";
export { createWriter, type Writer } from "./writer.ts";
export {
  type CleanupScope,
  type CleanupShare,
  type CleanupStore,
  createCleanupStore,
  type FoundKeys,
} from "./cleanup-store.ts";
export {
  type Comparison,
  createPartitionStore,
  type Partition,
  type PartitionStore,
} from "./partition-store.ts";
export { createPartCounts, type PartCount, type PartCounts } from "./part-counts.ts";
export { createWindowStore, type WindowFilter, type WindowStore } from "./window-store.ts";
export {
  createSuppressionStore,
  FOUND_LATER,
  type Suppression,
  type SuppressionKind,
  type SuppressionStore,
} from "./suppression-store.ts";
export { settingsOf, type WriteTicket } from "./write-ticket.ts";
export type { LandingSelection } from "./landing-selection.ts";
export type { RecordName } from "./record-keys.ts";
export {
  createRecordReader,
  type LandedEvent,
  type LandingCount,
  type RecordReader,
  recordKey,
} from "./record-reader.ts";
export { contentDigest } from "./row-content.ts";
export {
  BACKFILL_RUN,
  createRowReplacer,
  type Replacement,
  type RowReplacer,
  type WrongRow,
} from "./row-replacer.ts";
export {
  createErasureStore,
  type ErasureBeginning,
  type ErasureCounts,
  type ErasureStore,
  type ErasureSubject,
} from "./erasure-store.ts";
export { createRequestCompletion, type RequestCompletion } from "./request-completion.ts";
