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
export { createRequestStore, type DataSubjectRequest, type RequestStore } from "./request-store.ts";
export { WarehouseError, type WarehouseErrorCode } from "./warehouse-error.ts";
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
