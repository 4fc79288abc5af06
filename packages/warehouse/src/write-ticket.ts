import type { ClickHouseSettings } from "@clickhouse/client";

/** Leave to begin an INSERT of records. */
export type WriteTicket = {
  /** When it must have begun, ms since the epoch by the clock of ClickHouse. */
  readonly notAfter: number;
};

/**
 * Settings with which ClickHouse refuses an INSERT into a table of records that begins too late, as that of a process
 * that was paused. The error is retryable.
 */
export const settingsOf = (ticket: WriteTicket): ClickHouseSettings => ({
  // A constraint of the tables reads it.
  log_comment: `not after ${Math.floor(ticket.notAfter)}`,
});
