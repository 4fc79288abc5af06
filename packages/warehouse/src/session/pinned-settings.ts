import type { ClickHouseSettings } from "@clickhouse/client";

/** They change answers or writes silently, and a user's profile may differ from these defaults. */
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
  enable_parallel_replicas: "0",
  parallel_replicas_mode: "read_tasks",
  // A join finds one row of several.
  join_default_strictness: "ALL",
  any_join_distinct_right_table_keys: "0",
  // Written rows are lost, or go elsewhere.
  insert_shard_id: "0",
  insert_deduplication_token: "",
  wait_for_async_insert: "1",
  input_format_allow_errors_num: "0",
  input_format_allow_errors_ratio: "0",
  // Rows are added, or have other values.
  compatibility: "",
  allow_experimental_analyzer: "1",
  prefer_column_name_to_alias: "0",
  implicit_table_at_top_level: "",
  distributed_group_by_no_merge: "0",
  do_not_merge_across_partitions_select_final: "0",
  session_timezone: "",
  input_format_defaults_for_omitted_fields: "1",
  input_format_force_null_for_omitted_fields: "0",
  data_type_default_nullable: "0",
  extremes: "0",
  join_use_nulls: "0",
  transform_null_in: "0",
  aggregate_functions_null_for_empty: "0",
  empty_result_for_aggregation_by_empty_set: "0",
  // Values are written otherwise.
  date_time_output_format: "simple",
  date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands: "0",
  enable_named_columns_in_function_tuple: "0",
  output_format_json_array_of_rows: "0",
  output_format_json_map_as_array_of_tuples: "0",
  output_format_json_named_tuples_as_objects: "1",
  output_format_json_quote_64bit_integers: "0",
  output_format_json_quote_64bit_floats: "0",
  output_format_tsv_crlf_end_of_line: "0",
} as const satisfies Readonly<Record<string, string>>;

export const pinned: ClickHouseSettings = PINNED_SETTINGS as unknown as ClickHouseSettings;
