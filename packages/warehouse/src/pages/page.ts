import type { Readable } from "node:stream";
import type { RateWindow, RecordKind } from "@conversation-export/domain";

/**
 * A position in a window: the filtered date of the last record given out, in µs since the epoch, and its id.
 */
export type PagePosition = { readonly date: number; readonly id: string };

export type PageQuery = {
  readonly clientId: string;
  /** Lower bound of the filtered date, inclusive, µs since the epoch. */
  readonly since: number;
  /** Upper bound of the filtered date, exclusive, µs since the epoch. */
  readonly to: number;
  /** Only records behind this position are returned. */
  readonly after?: PagePosition;
  readonly pageSize: number;
  /**
   * false: a page holds at most `pageSize` records.
   * true: a page never ends inside a tie; a tie larger than a page extends it by up to 10,000 records.
   */
  readonly wholeTies: boolean;
  /** Text between two records, "," by default. Records contain no line breaks. */
  readonly separator?: "," | "\n";
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

export type MessagePageQuery = PageQuery & { readonly conversationId?: string };

/** A page: its end is known before its bytes are streamed. */
export type Page = {
  readonly rows: number;
  /** Position behind which the next page starts; null: this is the last page. */
  readonly next: PagePosition | null;
  /**
   * true when no record with the date of `next` is left for the next page, so that it may start 1 µs later.
   */
  readonly nextIsWhole: boolean;
  /**
   * The records as UTF-8 JSON, joined by the separator. Fails, and never ends cleanly, when the warehouse
   * fails midway. Destroying it cancels the query.
   */
  readonly records: Readable;
};

/** A range of `date_created`, µs since the epoch: from `since` inclusive to `to` exclusive. */
export type LineQuery = {
  readonly clientId: string;
  readonly since: number;
  readonly to: number;
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

/** Reads whole windows of a list in the order of creation, in steps: ranges that are read by one query. */
export type WindowLines = {
  /** End of the first step of a range; at most the end of the range. */
  stepEnd(query: LineQuery): Promise<number>;
  /**
   * The records of a range, each followed by a newline. Fails and is destroyed like the records of a page.
   */
  read(query: LineQuery): Promise<Readable>;
};

/** A part of a list as a Parquet file of its own, and how to open the part behind it. */
export type ParquetStep = {
  /**
   * Fails and is destroyed like the records of a page, but may also end cleanly without the end of the format
   * when the warehouse fails midway.
   */
  readonly bytes: Readable;
  /** null: this is the last part. */
  readonly next: OpenParquet | null;
};
/** Reads a part. @throws WarehouseError */
export type OpenParquet = (signal: AbortSignal) => Promise<ParquetStep>;

/**
 * Whole lists as Parquet, in the order of their pages, in parts whose files have the same columns: the fields
 * of the records (`RECORD_COLUMNS`), for changes also `deleted` and `deleted_at`. A list without records is
 * one part.
 */
export type ParquetLists = {
  conversations(query: {
    readonly clientId: string;
    readonly filter: "created" | "updated";
    /** Bounds of the filtered date as in `PageQuery`. */
    readonly since: number;
    readonly to: number;
  }): OpenParquet;
  messages(query: Pick<MessagePageQuery, "clientId" | "since" | "to" | "conversationId">): OpenParquet;
  endUsers(query: Pick<EndUserQuery, "clientId" | "from" | "externalId">): OpenParquet;
  changes(query: Pick<ChangeQuery, "clientId" | "kind" | "after" | "settled">): OpenParquet;
};

export type EndUserQuery = {
  readonly clientId: string;
  /** The id at which the page starts, inclusive; it need not exist. */
  readonly from?: string;
  /** Largest number of records. */
  readonly limit: number;
  /** Only end users with this external id. */
  readonly externalId?: string;
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

/** End users in the byte order of their ids. */
export type EndUserPage = {
  readonly rows: number;
  /** The id at which the next page starts; null: this is the last page. */
  readonly next: string | null;
  /** As in `Page`, with commas between the records. */
  readonly records: Readable;
};

export type ChangeQuery = {
  readonly clientId: string;
  readonly kind: RecordKind;
  /** Only changes behind this position are read: an instant of storing, µs since the epoch, and an id. */
  readonly after: PagePosition;
  /** Only changes that were stored before this instant are read, µs since the epoch. */
  readonly settled: number;
  /** Largest number of records. */
  readonly pageSize: number;
  /** Text between two records, "," by default. Records contain no line breaks. */
  readonly separator?: "," | "\n";
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

/** Records in the order of their latest change; deleted ones as `{"_id","deleted":true,"deleted_at"}`. */
export type ChangePage = {
  /** May be fewer than the page size, or none, although more follow. */
  readonly rows: number;
  /** Behind this position the next page starts. */
  readonly next: PagePosition;
  /** true: everything that was settled has been read. */
  readonly isLast: boolean;
  /** As in `Page`. */
  readonly records: Readable;
};

/** @throws WarehouseError */
export type ReadChanges = (query: ChangeQuery) => Promise<ChangePage>;

export type ApiClient = {
  readonly clientId: string;
  readonly keyId: string;
  readonly scopes: readonly string[];
  readonly clientDeleted: boolean;
  /** null: the default of the configuration. */
  readonly linkBounds: "same" | "advancing" | null;
  /** By name of the limit; the configured limits apply to missing names. */
  readonly rateLimits: Readonly<Record<string, readonly RateWindow[]>>;
};

/**
 * Queries of export-api.
 *
 * @throws WarehouseError from every method
 */
export type Reader = {
  conversationsByCreation(query: PageQuery): Promise<Page>;
  conversationsByUpdate(query: PageQuery): Promise<Page>;
  messagesByCreation(query: MessagePageQuery): Promise<Page>;
  endUsers(query: EndUserQuery): Promise<EndUserPage>;
  readonly changes: ReadChanges;
  readonly lines: Readonly<Record<"conversations" | "messages", WindowLines>>;
  readonly parquet: ParquetLists;
  /** `hash` is the SHA-256 of the key, 64 lower-case hex digits. null: unknown or revoked. */
  findKey(hash: string): Promise<ApiClient | null>;
  /** Hashes of keys that are neither revoked nor expired, the newest ones when there are more than `most`. */
  validKeys(most: number): Promise<string[]>;
  /** Checks that the server knows both users, and that keys can be looked up. */
  ping(): Promise<void>;
};
