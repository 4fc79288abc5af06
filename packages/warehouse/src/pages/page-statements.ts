import type { ClickHouseSettings } from "@clickhouse/client";
import type { StatementName } from "../session/session.ts";
import { MARK } from "./page-stream.ts";
import { type Candidates, exceptionsAbout, factsOf, SOME_HAS_MOVED } from "./sql/identity-sql.ts";
import type { List } from "./sql/list.ts";
import { endOf, FIRST_ROWS, type RangedRows, type ReadShape, wholeInstantsOf } from "./sql/page-sql.ts";

const READ_SETTINGS: ClickHouseSettings = {
  // All rows of a key lie in one partition, because the partition is computed from a column of the key.
  do_not_merge_across_partitions_select_final: 1,
  // A skip index must not hide the newest version of a row.
  use_skip_indexes_if_final: 1,
  use_skip_indexes_if_final_exact_mode: 1,
  query_plan_optimize_lazy_final: 0,
  // One snapshot of each table for the keys of a page and its records.
  enable_shared_storage_snapshot_in_query: 1,
  cancel_http_readonly_queries_on_client_close: 1,
};

/**
 * Blocks of a few MB stay in the processor's caches, and texts are copied in place: cheaper than handing them
 * to threads.
 */
const TEXT_SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  max_block_size: "2048",
  output_format_parallel_formatting: 0,
};

/** Keeps the order of the table, so that nothing has to be sorted. */
const JOIN_IN_ORDER: ClickHouseSettings = { join_algorithm: "hash", max_bytes_ratio_before_external_join: 0 };

/** For the rows of a page (`pageRows`) with these columns of text. */
export const pageSettings = (columns: readonly string[], separator = ","): ClickHouseSettings => ({
  ...READ_SETTINGS,
  ...TEXT_SETTINGS,
  ...JOIN_IN_ORDER,
  format_template_row_format: [...columns, "key"].map((column) => `\${${column}:Raw}`).join(""),
  format_template_rows_between_delimiter: separator,
  // How many rows there are.
  format_template_resultset_format: `\${data}${MARK}\${rows:CSV}\n`,
});

/** For sharded tables: parts of a query run in turn, so each finds what earlier ones found. */
const SHARDED_SETTINGS: ClickHouseSettings = {
  enable_shared_storage_snapshot_in_query: 0,
  prefer_localhost_replica: 0,
  async_query_sending_for_remote: 0,
  query_plan_join_swap_table: "false",
  // All rows of a record lie on one shard.
  distributed_product_mode: "local",
};

/** Collects sets from all shards before reading records: stale rows before those that replace them. */
const SETS_FIRST: ClickHouseSettings = { ...SHARDED_SETTINGS, distributed_product_mode: "global" };

/** What a statement about sharded tables needs in addition to its own settings; `setsFirst`: see `SETS_FIRST`. */
export const shardedSettings = (sharded: boolean, setsFirst: boolean): ClickHouseSettings => {
  if (!sharded) return {};
  return setsFirst ? SETS_FIRST : SHARDED_SETTINGS;
};

const LINE_SETTINGS: ClickHouseSettings = { ...READ_SETTINGS, ...JOIN_IN_ORDER };

/** For ranges as lines. */
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

/**
 * Rows of a row group, held in memory; ClickHouse closes a group behind a whole block, so up to twice as
 * many.
 */
const GROUP_ROWS = "20000";
const GROUP_BYTES = String(128 * 1024 * 1024);

export const PARQUET_SETTINGS: ClickHouseSettings = {
  ...LINE_SETTINGS,
  output_format_parquet_compression_method: "zstd",
  output_format_parquet_string_as_string: 1,
  output_format_parquet_compliant_nested_types: 1,
  output_format_parquet_row_group_size: GROUP_ROWS,
  output_format_parquet_row_group_size_bytes: GROUP_BYTES,
  // The places in these would not survive the joining of steps, and readers do without.
  output_format_parquet_write_page_index: 0,
  output_format_parquet_write_bloom_filter: 0,
  // By default the last digit of a number may be wrong.
  precise_float_parsing: 1,
};

export type Parameters = Readonly<Record<string, string | number | readonly string[]>>;

/** A query as it is sent. Exported for benchmarks and EXPLAIN. */
export type PageStatement = {
  readonly name: StatementName;
  readonly sql: string;
  readonly parameters: Parameters;
  readonly settings: ClickHouseSettings;
};

const TEXT = " FORMAT TabSeparatedRaw";

/** Reads where the first rows of a range end; see `endOf`. */
export const endStatement = (
  name: StatementName,
  rows: RangedRows,
  parameters: Parameters,
  sharded: boolean,
): PageStatement => ({
  name,
  sql: endOf(rows) + TEXT,
  parameters,
  // Few rows more than the keys wanted are read; buffered, all of the range would be.
  settings: {
    max_threads: 1,
    max_block_size: "1024",
    read_in_order_use_buffering: 0,
    ...shardedSettings(sharded, false),
  },
});

/**
 * Reads what the statement of a range must handle; see `factsOf`. The parameter `noted` is 0 where it is not
 * known.
 */
export const factsStatement = (
  candidates: Candidates | null,
  parameters: Parameters,
  sharded: boolean,
): PageStatement => ({
  name: "pages.facts",
  sql: factsOf(candidates, Number(parameters["noted"] ?? 0) > 0) + TEXT,
  parameters,
  settings: { max_threads: 1, ...shardedSettings(sharded, false) },
});

/** Reads what may have to be handled; see `exceptionsAbout`. */
export const exceptionsStatement = (
  candidates: Candidates,
  parameters: Parameters,
  sharded: boolean,
): PageStatement => ({
  ...factsStatement(candidates, parameters, sharded),
  name: "pages.exceptions",
  sql: `${exceptionsAbout(candidates)} FORMAT JSONCompactEachRow`,
});

/** Reads whether one of the records with these names in `record_dates` has several dates. */
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

/** What a statement about the records of a list needs in addition to the settings of its format. */
export const listSettings = (
  { settings }: { readonly settings?: ClickHouseSettings | undefined },
  { sharded, hasMoved }: ReadShape,
): ClickHouseSettings => ({
  ...settings,
  ...shardedSettings(sharded, hasMoved),
});

/** Reads a page of the records of a range. */
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

/** Reads where the last instant ends that a page of a range takes whole; see `wholeInstantsOf`. */
export const instantsStatement = (list: List, shape: ReadShape, parameters: Parameters): PageStatement => ({
  name: `pages.instants_of_${list.name}`,
  sql: wholeInstantsOf(`${list.dates(shape)} ${FIRST_ROWS}`) + TEXT,
  parameters,
  settings: { ...READ_SETTINGS, max_threads: 1, ...listSettings(list, shape) },
});
