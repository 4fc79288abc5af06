import type { Readable } from "node:stream";
import type { DatedList, LinkBounds, RateWindow, RecordKind } from "@conversation-export/domain";

/** Filtered date (µs since the epoch) and id of a record; without id: before that date. */
export type PagePosition = { readonly date: number; readonly id: string };

export type PageQuery = {
  readonly clientId: string;
  /** Inclusive, µs since the epoch. */
  readonly since: number;
  /** Exclusive, µs since the epoch. */
  readonly to: number;
  readonly after?: PagePosition;
  /** Of the page before. */
  readonly pace?: number;
  readonly pageSize: number;
  /** true: a page ends inside a tie only after 10,000 more records. */
  readonly wholeTies: boolean;
  /** "," by default. */
  readonly separator?: "," | "\n";
  readonly signal?: AbortSignal;
};

export type MessagePageQuery = PageQuery & { readonly conversationId?: string };

export type Streamed<End> = {
  /** UTF-8 JSON; never ends cleanly when the warehouse fails. Destroying it cancels the query. */
  readonly records: Readable;
  /** Throws before the records have ended. */
  readonly end: () => End;
};

export type PageEnd = {
  readonly rows: number;
  /** null: last page. */
  readonly next: PagePosition | null;
  /** Whole µs between records; absent where it says nothing about the next page. */
  readonly pace?: number;
};
export type Page = Streamed<PageEnd>;

export type ListStep = {
  /** Fails like the records of a page; Parquet may end without its footer. */
  readonly bytes: Readable;
  /** null: last part. */
  readonly next: OpenStep | null;
};
/** After an abort it rejects, or its bytes end with an error. @throws WarehouseError */
export type OpenStep = (signal: AbortSignal) => Promise<ListStep>;

/** What some lists take beyond a window. */
type Selections = {
  readonly conversations: { readonly filter: "created" | "updated" };
  readonly messages: Pick<MessagePageQuery, "conversationId">;
};
type SelectionOf<List> = List extends keyof Selections ? Selections[List] : unknown;

export type ListSteps = {
  readonly [List in DatedList]: (
    query: Pick<PageQuery, "clientId" | "since" | "to" | "after"> & SelectionOf<List>,
  ) => OpenStep;
} & {
  endUsers(query: Pick<EndUserQuery, "clientId" | "from" | "externalId">): OpenStep;
  changes(query: Pick<ChangeQuery, "clientId" | "kind" | "after" | "stableUpTo">): OpenStep;
};

export type EndUserQuery = {
  readonly clientId: string;
  /** Inclusive; it need not exist. */
  readonly from?: string;
  readonly limit: number;
  readonly externalId?: string;
  readonly signal?: AbortSignal;
};

/** In the byte order of ids. */
export type EndUserPage = Streamed<{
  readonly rows: number;
  /** null: last page. */
  readonly next: string | null;
}>;

export type ChangeQuery = {
  readonly clientId: string;
  readonly kind: RecordKind;
  /** Instant of storing, µs since the epoch. */
  readonly after: PagePosition;
  /** Exclusive, µs since the epoch. */
  readonly stableUpTo: number;
  readonly pageSize: number;
  readonly signal?: AbortSignal;
};

/** By latest change; deleted ones as `{"_id","deleted":true,"deleted_at"}`. */
export type ChangePage = Streamed<{
  /** May be 0 although more follow. */
  readonly rows: number;
  readonly next: PagePosition;
  /** Everything stable has been read. */
  readonly isLast: boolean;
}>;

export type ApiClient = {
  readonly clientId: string;
  readonly keyId: string;
  readonly scopes: readonly string[];
  readonly clientDeleted: boolean;
  /** null: as configured. */
  readonly linkBounds: LinkBounds | null;
  /** By name of the limit; missing ones: as configured. */
  readonly rateLimits: Readonly<Record<string, readonly RateWindow[]>>;
};

export type PagesByCreation = {
  [List in DatedList as `${List}ByCreation`]: (
    query: PageQuery & Omit<SelectionOf<List>, "filter">,
  ) => Promise<Page>;
};

/** @throws WarehouseError from every method */
export type Reader = PagesByCreation & {
  conversationsByUpdate(query: PageQuery): Promise<Page>;
  endUsers(query: EndUserQuery): Promise<EndUserPage>;
  changes(query: ChangeQuery): Promise<ChangePage>;
  readonly lines: ListSteps;
  /** A list without records is one part; all parts have the same columns. */
  readonly parquet: ListSteps;
  /** `hash`: SHA-256, 64 lower-case hex digits; null: unknown, revoked or expired. */
  findKey(hash: string): Promise<ApiClient | null>;
  validKeys(most: number): Promise<string[]>;
  ping(): Promise<void>;
};
