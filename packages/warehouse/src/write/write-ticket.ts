import type { ClickHouseSettings } from "@clickhouse/client";

/** Permission to begin an INSERT of records. */
export type WriteTicket = {
  /** Latest begin of the INSERT, ms since the epoch by ClickHouse's clock. */
  readonly notAfter: number;
  /** Readers may have passed rows with an earlier instant of upload, µs. */
  readonly uploadFrom: number;
};

/** Begin of the id of a query that inserts rows with this instant of upload. */
export const uploadPrefix = (uploadedAt: number): string => `uploaded-${uploadedAt}-`;

/** SQL condition for system.processes: queries that insert rows of records, and what shards do for them. */
export const OF_RECORDS = "startsWith(initial_query_id, 'uploaded-')";

/**
 * Settings that make ClickHouse refuse the INSERT, with a retryable error, if it begins after
 * `ticket.notAfter`, for example because the process was paused for longer than its lease.
 */
export const settingsOf = (ticket: WriteTicket): ClickHouseSettings => ({
  // A constraint of the record tables reads this comment.
  log_comment: `not after ${Math.floor(ticket.notAfter)}`,
});
