import type { Readable } from "node:stream";
import type { RateWindow } from "@conversation-export/domain";

/** A position in a window: the filtered date of the last record given out, in µs since the epoch, and its id. */
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
  /** What stands between two records; "," when it is left out. A record never holds a line break. */
  readonly separator?: "," | "\n";
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

export type MessagePageQuery = PageQuery & { readonly conversationId?: string };

/** One page, known before its bytes flow. */
export type Page = {
  readonly rows: number;
  /** Where the next page starts, or null when this is the last one. */
  readonly next: PagePosition | null;
  /** true when every record with the date of `next` has been given out, so that `next.date + 1 µs` loses nothing. */
  readonly nextIsWhole: boolean;
  /**
   * The records as UTF-8 JSON with the separator between them, none behind the last.
   * Errors (never ends cleanly) when the warehouse fails midway. Destroying it cancels the query.
   */
  readonly records: Readable;
};

/** A range of `date_created`, in µs since the epoch: `since` is in it, `to` is not. */
export type LineQuery = {
  readonly clientId: string;
  readonly since: number;
  readonly to: number;
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

/** A list in the order of its creation, for whole windows. */
export type WindowLines = {
  /** Where the first step of a range ends, at most its end: a step is a range that is read at once. */
  stepEnd(query: LineQuery): Promise<number>;
  /** The records of a range, one a line, each line ended. Errors, and is destroyed, as the records of a page. */
  read(query: LineQuery): Promise<Readable>;
};

export type EndUserQuery = {
  readonly clientId: string;
  /** The id at which the page starts, inclusive; it need not exist. */
  readonly from?: string;
  /** Largest number of records. */
  readonly limit: number;
  /** Only people whom another system knows by this id. */
  readonly externalId?: string;
  /** Cancels the query. */
  readonly signal?: AbortSignal;
};

/** End users in the byte order of their ids. */
export type EndUserPage = {
  readonly rows: number;
  /** The id at which the next page starts, or null when this is the last one. */
  readonly next: string | null;
  /** As in `Page`, with commas between the records. */
  readonly records: Readable;
};

export type ApiClient = {
  readonly clientId: string;
  readonly keyId: string;
  readonly scopes: readonly string[];
  readonly clientDeleted: boolean;
  /** null: the default of the configuration. */
  readonly linkBounds: "same" | "advancing" | null;
  /** By name of the limit; limits that are not named are those of the configuration. */
  readonly rateLimits: Readonly<Record<string, readonly RateWindow[]>>;
};

/** What export-api reads. Errors are `WarehouseError` with `code`, `retryable` and `cause`. */
export type Reader = {
  conversationsByCreation(query: PageQuery): Promise<Page>;
  conversationsByUpdate(query: PageQuery): Promise<Page>;
  messagesByCreation(query: MessagePageQuery): Promise<Page>;
  endUsers(query: EndUserQuery): Promise<EndUserPage>;
  readonly lines: Readonly<Record<"conversations" | "messages", WindowLines>>;
  /** `hash` is the SHA-256 of the key, 64 lower-case hex digits. null: unknown or revoked. */
  findKey(hash: string): Promise<ApiClient | null>;
  ping(): Promise<void>;
  close(): Promise<void>;
};
