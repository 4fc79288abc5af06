import type { Readable } from "node:stream";

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
   * The records as UTF-8 JSON separated by commas: what stands between `[` and `]`.
   * Errors (never ends cleanly) when the warehouse fails midway. Destroying it cancels the query.
   */
  readonly records: Readable;
};

export type ApiClient = {
  readonly clientId: string;
  readonly keyId: string;
  readonly scopes: readonly string[];
  readonly clientDeleted: boolean;
  /** null: the default of the configuration. */
  readonly linkBounds: "same" | "advancing" | null;
};

/** What export-api reads. Errors are `WarehouseError` with `code`, `retryable` and `cause`. */
export type Reader = {
  conversationsByCreation(query: PageQuery): Promise<Page>;
  conversationsByUpdate(query: PageQuery): Promise<Page>;
  messagesByCreation(query: MessagePageQuery): Promise<Page>;
  /** `hash` is the SHA-256 of the key, 64 lower-case hex digits. null: unknown or revoked. */
  findKey(hash: string): Promise<ApiClient | null>;
  ping(): Promise<void>;
  close(): Promise<void>;
};
