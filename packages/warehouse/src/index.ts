export { type Batch, createBatch, type TableInsert } from "./batch.ts";
export {
  type ClientRow,
  type ClientStore,
  createClientStore,
  type KeyRow,
  type LinkBounds,
} from "./client-store.ts";
export { type MigrationState, migrate } from "./migrate.ts";
export { renderMigration, type Topology } from "./migration-template.ts";
export type { ApiClient, MessagePageQuery, Page, PagePosition, PageQuery, Reader } from "./page.ts";
export { conversationsByCreationStatement, createReader, type PageStatement } from "./reader.ts";
export { WarehouseError, type WarehouseErrorCode } from "./warehouse-error.ts";
export { createWriter, type Writer } from "./writer.ts";
