import type { ClickHouseSettings } from "@clickhouse/client";
import { type Micros, RECORD_TABLES, type WriteTicket } from "@conversation-export/domain";
import type { StatementName } from "../session/session.ts";
import { CHANGES } from "../tables/changes.ts";
import { RECORD_DATES } from "../tables/record-dates.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { BY_HAND_REFUSED, STAMPED } from "./stamped.ts";

/** Shows the stamp while the query runs. */
export const uploadPrefix = (stamp: Micros): string => `uploaded-${stamp}-`;

const TABLES = [...RECORD_TABLES, RECORD_DATES, CHANGES, "landing"].join("|");
const BY_HAND = `match(query, '(?is)\\\\bINSERT\\\\s+INTO\\\\s+(TABLE\\\\s+)?([\`"]?\\\\w+[\`"]?\\\\s*\\\\.\\\\s*)?[\`"]?(${TABLES})(_local)?[\`"]?(\\\\W|$)')`;

/** INSERTs of records in system.processes, also by hand, and what shards do for them. */
export const OF_RECORDS = `(query_kind IN ('Insert', 'AsyncInsertFlush') AND (startsWith(initial_query_id, 'uploaded-') OR ${BY_HAND}))`;

/** µs; stamps are ahead when ClickHouse's clock was set back. */
export const MAX_AHEAD: Micros = 10_000_000;

/**
 * Fails stale tickets. Answered once `system.processes` shows the statement: what that list lacks after an announcement
 * has ended or will be rejected.
 */
export const fence = ({ stamp, generation }: WriteTicket): string =>
  `(SELECT throwIf(maxIf(value, name = 'announced') >= ${stamp}, 'readers have passed the stamp')
      + throwIf(maxIf(value, name = 'required') > ${generation}, 'judged without the latest suppressions')
      + throwIf(${stamp} > toUnixTimestamp64Micro(now64(6)) + ${MAX_AHEAD}, 'the stamp is ahead of the clock')
    FROM coordination) = 0`;

export const fenced = (name: StatementName): ClickHouseSettings => ({ log_comment: `${STAMPED} ${name}` });

export const isStaleTicket = (error: unknown): boolean =>
  error instanceof WarehouseError &&
  error.causeName === "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO" &&
  !String(error.cause).includes(BY_HAND_REFUSED);
