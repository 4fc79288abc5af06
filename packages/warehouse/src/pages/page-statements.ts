import type { Readable } from "node:stream";
import type { ClickHouseSettings } from "@clickhouse/client";
import type { StatementName } from "../session/session.ts";
import { MARK } from "./page-stream.ts";
import { type Candidates, exceptionsAbout, conditionsOf, SOME_HAS_MOVED } from "./sql/identity-sql.ts";
import type { List } from "./sql/list.ts";
import { endOf, FIRST_ROWS, type RangedRows, type ReadShape, wholeInstantsOf } from "./sql/page-sql.ts";

const READ_SETTINGS: ClickHouseSettings = {
  // The partition is computed from a column of the key.
  do_not_merge_across_partitions_select_final: 1,
  // A skip index must not hide the newest version of a row.
  use_skip_indexes_if_final: 1,
  use_skip_indexes_if_final_exact_mode: 1,
  query_plan_optimize_lazy_final: 0,
  // One snapshot for the keys of a page and its records.
  enable_shared_storage_snapshot_in_query: 1,
  cancel_http_readonly_queries_on_client_close: 1,
};

/** Blocks of a few MB stay in the processor's caches: cheaper than several threads. */
const TEXT_SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  max_block_size: "2048",
  output_format_parallel_formatting: 0,
};

/** Keeps the order of the table, so that nothing is sorted. */
const JOIN_IN_ORDER: ClickHouseSettings = { join_algorithm: "hash", max_bytes_ratio_before_external_join: 0 };

export const pageSettings = (columns: readonly string[], separator = ","): ClickHouseSettings => ({
  ...READ_SETTINGS,
  ...TEXT_SETTINGS,
  ...JOIN_IN_ORDER,
  format_template_row_format: [...columns, "key"].map((column) => `\${${column}:Raw}`).join(""),
  format_template_rows_between_delimiter: separator,
  format_template_resultset_format: `\${data}${MARK}\${rows:CSV}\n`,
});

/** Parts of a query run in turn, so each finds what earlier ones found. */
const SHARDED_SETTINGS: ClickHouseSettings = {
  enable_shared_storage_snapshot_in_query: 0,
  prefer_localhost_replica: 0,
  async_query_sending_for_remote: 0,
  query_plan_join_swap_table: "false",
  // All rows of a record lie on one shard.
  distributed_product_mode: "local",
};

/** Sets from all shards first: rows under former dates before those that replace them. */
const SETS_FIRST: ClickHouseSettings = { ...SHARDED_SETTINGS, distributed_product_mode: "global" };

export const shardedSettings = (sharded: boolean, setsFirst: boolean): ClickHouseSettings => {
  if (!sharded) return {};
  return setsFirst ? SETS_FIRST : SHARDED_SETTINGS;
};

const LINE_SETTINGS: ClickHouseSettings = { ...READ_SETTINGS, ...JOIN_IN_ORDER };

export const TEXT_LINE_SETTINGS: ClickHouseSettings = {
  ...LINE_SETTINGS,
  ...TEXT_SETTINGS,
  format_custom_escaping_rule: "Raw",
  format_custom_field_delimiter: "",
  format_custom_row_before_delimiter: "",
  format_custom_row_after_delimiter: "\n",
  format_custom_row_between_delimiter: "",
  format_custom_result_before_delimiter: "",
  format_custom_result_after_delimiter: MARK,
};

/** ClickHouse closes a group after a whole block. */
const GROUP_ROWS = "20000";
const GROUP_BYTES = String(128 * 1024 * 1024);

export const PARQUET_SETTINGS: ClickHouseSettings = {
  ...LINE_SETTINGS,
  max_threads: 1,
  max_block_size: "4096",
  output_format_parquet_compression_method: "zstd",
  output_format_parquet_string_as_string: 1,
  output_format_parquet_compliant_nested_types: 1,
  output_format_parquet_row_group_size: GROUP_ROWS,
  output_format_parquet_row_group_size_bytes: GROUP_BYTES,
  // Joining steps would make their offsets wrong.
  output_format_parquet_write_page_index: 0,
  output_format_parquet_write_bloom_filter: 0,
  // By default the last digit of a number may be wrong.
  precise_float_parsing: 1,
};

export type Parameters = Readonly<Record<string, string | number | readonly string[]>>;

export type PageStatement = {
  readonly name: StatementName;
  readonly sql: string;
  readonly parameters: Parameters;
  readonly settings: ClickHouseSettings;
};

export type SendStatement = <T>(
  statement: PageStatement,
  open: (stream: Readable) => T | Promise<T>,
  signal: AbortSignal | undefined,
) => Promise<T>;

const TEXT = " FORMAT TabSeparatedRaw";

export const endStatement = (
  name: StatementName,
  rows: RangedRows,
  parameters: Parameters,
  sharded: boolean,
): PageStatement => ({
  name,
  sql: endOf(rows) + TEXT,
  parameters,
  // Buffered, all of the range would be read.
  settings: {
    max_threads: 1,
    max_block_size: "1024",
    read_in_order_use_buffering: 0,
    ...shardedSettings(sharded, false),
  },
});

export const conditionsStatement = (
  candidates: Candidates | null,
  parameters: Parameters,
  sharded: boolean,
): PageStatement => ({
  name: "pages.conditions",
  sql: conditionsOf(candidates, Number(parameters["known"] ?? 0) > 0) + TEXT,
  parameters,
  settings: { max_threads: 1, ...shardedSettings(sharded, false) },
});

export const exceptionsStatement = (
  candidates: Candidates,
  parameters: Parameters,
  sharded: boolean,
): PageStatement => ({
  ...conditionsStatement(candidates, parameters, sharded),
  name: "pages.exceptions",
  sql: `${exceptionsAbout(candidates)} FORMAT JSONCompactEachRow`,
});

export const movedStatement = (
  client: string,
  names: readonly string[],
  sharded: boolean,
): PageStatement => ({
  name: "pages.moved",
  sql: SOME_HAS_MOVED + TEXT,
  parameters: { client, names },
  settings: { max_threads: 1, ...shardedSettings(sharded, false) },
});

export const listSettings = (
  { settings }: { readonly settings?: ClickHouseSettings | undefined },
  { sharded, hasMoved }: ReadShape,
): ClickHouseSettings => ({
  ...settings,
  ...shardedSettings(sharded, hasMoved),
});

export const pageStatement = (
  list: List,
  shape: ReadShape,
  parameters: Parameters,
  separator?: string,
): PageStatement => ({
  name: `pages.${list.name}`,
  sql: list.page(shape),
  parameters,
  settings: { ...pageSettings(list.columns, separator), ...listSettings(list, shape) },
});

export const instantsStatement = (list: List, shape: ReadShape, parameters: Parameters): PageStatement => ({
  name: `pages.instants_of_${list.name}`,
  sql: wholeInstantsOf(`${list.dates(shape)} ${FIRST_ROWS}`) + TEXT,
  parameters,
  settings: { ...READ_SETTINGS, max_threads: 1, ...listSettings(list, shape) },
});
