import type { Readable } from "node:stream";
import type { RateWindow, RecordKind } from "@conversation-export/domain";

/**
 * A position in a window: the filtered date of the last record given out, in µs since the epoch, and its id; without an
 * id, in front of all records of that date.
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
  /** `PageEnd.pace` of the page before in the same walk. */
  readonly pace?: number;
  readonly pageSize: number;
  /**
   * False: at most `pageSize` records. True: a page never ends inside a tie, and may have up to 10,000 more.
   */
  readonly wholeTies: boolean;
  /** Text between two records, "," by default. Records contain no line breaks. */
  readonly separator?: "," | "\n";
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

export type MessagePageQuery = PageQuery & { readonly conversationId?: string };

/** Records on their way, and how they ended. */
export type Streamed<End> = {
  /**
   * The records as UTF-8 JSON with separators. Never ends cleanly when the warehouse fails; destroying it
   * cancels the query.
   */
  readonly records: Readable;
  /** To be called when the records have ended; throws before. */
  readonly end: () => End;
};

export type PageEnd = {
  readonly rows: number;
  /** Position behind which the next page starts, with whole ties in front of a date if it can; null: this is the last page. */
  readonly next: PagePosition | null;
  /** How far apart the records of the page lay, whole µs; absent where that says nothing about the next page. */
  readonly pace?: number;
};
export type Page = Streamed<PageEnd>;

/** A part of a list, and how to open the part behind it. */
export type ListStep = {
  /** Fails like the records of a page; as Parquet it may end without its footer. */
  readonly bytes: Readable;
  /** null: this is the last part. */
  readonly next: OpenStep | null;
};
/** Opens a part. When the signal aborts, it rejects or its bytes end with an error. @throws WarehouseError */
export type OpenStep = (signal: AbortSignal) => Promise<ListStep>;

/** Whole lists in the order of their pages, in parts that are read by one query each. */
export type ListSteps = {
  conversations(
    query: Pick<PageQuery, "clientId" | "since" | "to" | "after"> & {
      readonly filter: "created" | "updated";
    },
  ): OpenStep;
  messages(query: Pick<MessagePageQuery, "clientId" | "since" | "to" | "after" | "conversationId">): OpenStep;
  endUsers(query: Pick<EndUserQuery, "clientId" | "from" | "externalId">): OpenStep;
  changes(query: Pick<ChangeQuery, "clientId" | "kind" | "after" | "stableUpTo">): OpenStep;
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

/** End users in the byte order of their ids, with commas between them. */
export type EndUserPage = Streamed<{
  readonly rows: number;
  /** The id at which the next page starts; null: this is the last page. */
  readonly next: string | null;
}>;

export type ChangeQuery = {
  readonly clientId: string;
  readonly kind: RecordKind;
  /** Only changes behind this position are read: an instant of storing, µs since the epoch, and an id. */
  readonly after: PagePosition;
  /** Only changes that were stored before this instant are read, µs since the epoch. */
  readonly stableUpTo: number;
  /** Largest number of records. */
  readonly pageSize: number;
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

/** Records in the order of their latest change; deleted ones as `{"_id","deleted":true,"deleted_at"}`. */
export type ChangePage = Streamed<{
  /** May be fewer than the page size, or none, although more follow. */
  readonly rows: number;
  /** Behind this position the next page starts. */
  readonly next: PagePosition;
  /** true: everything that was stable has been read. */
  readonly isLast: boolean;
}>;

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
  changes(query: ChangeQuery): Promise<ChangePage>;
  /** Lists as lines of JSON, each followed by a newline. */
  readonly lines: ListSteps;
  /**
   * Lists as Parquet, in parts whose files have the same columns: the fields of the records, for
   * changes also `deleted` and `deleted_at`. A list without records is one part.
   */
  readonly parquet: ListSteps;
  /** `hash` is the SHA-256 of the key, 64 lower-case hex digits. null: unknown or revoked. */
  findKey(hash: string): Promise<ApiClient | null>;
  /** Hashes of keys that are neither revoked nor expired, the newest ones when there are more than `most`. */
  validKeys(most: number): Promise<string[]>;
  /** Checks that the server knows both users, and that keys can be looked up. */
  ping(): Promise<void>;
};
