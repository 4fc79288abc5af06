import type { ClickHouseSettings } from "@clickhouse/client";

/**
 * Settings that change what a statement answers, or what it writes, without an error, with the defaults of
 * ClickHouse. They are sent with every statement, since the profile of a user may have others.
 */
export const PINNED_SETTINGS = {
  // Rows are left out.
  limit: "0",
  offset: "0",
  additional_table_filters: "{}",
  additional_result_filter: "",
  apply_deleted_mask: "1",
  final: "0",
  read_overflow_mode: "throw",
  read_overflow_mode_leaf: "throw",
  group_by_overflow_mode: "throw",
  sort_overflow_mode: "throw",
  result_overflow_mode: "throw",
  set_overflow_mode: "throw",
  join_overflow_mode: "throw",
  distinct_overflow_mode: "throw",
  transfer_overflow_mode: "throw",
  timeout_overflow_mode: "throw",
  timeout_overflow_mode_leaf: "throw",
  use_query_cache: "0",
  // Rows are added, or have other values.
  extremes: "0",
  join_use_nulls: "0",
  transform_null_in: "0",
  aggregate_functions_null_for_empty: "0",
  empty_result_for_aggregation_by_empty_set: "0",
} as const satisfies Readonly<Record<string, string>>;

export const pinned: ClickHouseSettings = PINNED_SETTINGS as unknown as ClickHouseSettings;
