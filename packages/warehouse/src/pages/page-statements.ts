import type { ClickHouseSettings } from "@clickhouse/client";
import type { StatementName } from "../session/session.ts";
import type { MessagePageQuery } from "./page.ts";
import {
  conversationMessageCandidates,
  conversationMessageOrder,
  messagesOfConversation,
} from "./sql/conversation-messages-sql.ts";
import {
  conversationCandidates,
  conversationOrder,
  conversationsByCreation,
  messageCandidates,
  messageOrder,
  messagesByCreation,
} from "./sql/created-sql.ts";
import { type Candidates, doubtsAbout, factsOf, SOME_HAS_SEVERAL } from "./sql/identity-sql.ts";
import { boundOf, type PageShape, type RangeShape, type RowOrder } from "./sql/page-sql.ts";
import { END_MARK } from "./page-stream.ts";
import { conversationsByUpdate, updateCandidates, updateOrder } from "./sql/updated-sql.ts";

/** Records by which a page may grow when a single instant exceeds it. */
const TIE_EXTENSION = 10_000;

const READ_SETTINGS: ClickHouseSettings = {
  format_custom_escaping_rule: "Raw",
  format_custom_field_delimiter: "",
  format_custom_row_before_delimiter: "",
  format_custom_row_after_delimiter: "",
  format_custom_row_between_delimiter: ",",
  format_custom_result_before_delimiter: "",
  format_custom_result_after_delimiter: END_MARK,
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
 * Blocks of a few MB stay in the caches of a processor; texts are copied as they stand. Both take less than
 * handing the texts to other threads.
 */
const TEXT_SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  max_block_size: "2048",
  output_format_parallel_formatting: 0,
};

export const PAGE_SETTINGS: ClickHouseSettings = { ...READ_SETTINGS, ...TEXT_SETTINGS };

/** ClickHouse reads other columns behind a sort with a LIMIT, however large, of the rows that it leaves. */
export const TEXTS_LAST: ClickHouseSettings = { query_plan_max_limit_for_lazy_materialization: "0" };

/**
 * For tables distributed over several servers. Every part of a query is sent only when its turn comes, also
 * to the server itself, and reads the current rows, so it finds everything that earlier parts have found.
 */
const SPREAD_SETTINGS: ClickHouseSettings = {
  enable_shared_storage_snapshot_in_query: 0,
  prefer_localhost_replica: 0,
  async_query_sending_for_remote: 0,
  query_plan_join_swap_table: "false",
  // All rows of a record lie on one shard.
  distributed_product_mode: "local",
};

/**
 * Collects the sets of a statement from all shards before its records are read: stale rows before those that
 * replace them. On one shard the records could be read before the set.
 */
const SETS_FIRST: ClickHouseSettings = { ...SPREAD_SETTINGS, distributed_product_mode: "global" };

/** What a statement about spread tables needs besides its own settings; `setsFirst`: see `SETS_FIRST`. */
export const spreadSettings = (spread: boolean, setsFirst: boolean): ClickHouseSettings => {
  if (!spread) return {};
  return setsFirst ? SETS_FIRST : SPREAD_SETTINGS;
};

const LINE_SETTINGS: ClickHouseSettings = {
  ...READ_SETTINGS,
  format_custom_row_between_delimiter: "",
  format_custom_row_after_delimiter: "\n",
  // Keeps the order of the table, so that nothing has to be sorted.
  join_algorithm: "hash",
  max_bytes_ratio_before_external_join: 0,
};

/** For ranges as lines. */
export const TEXT_LINE_SETTINGS: ClickHouseSettings = { ...LINE_SETTINGS, ...TEXT_SETTINGS };

/**
 * Rows of a row group, which ClickHouse and readers hold in memory; a step has a few. ClickHouse closes a
 * group behind a whole block, so it may have up to twice as many.
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

// The table gives the keys of a window in order, so grouping in order is the fastest.
export const IN_ORDER: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

export type Parameters = Readonly<Record<string, string | number | readonly string[]>>;

/** A query as it is sent. Exported for benchmarks and EXPLAIN. */
export type PageStatement = {
  readonly name: StatementName;
  readonly sql: string;
  readonly parameters: Parameters;
  readonly settings: ClickHouseSettings;
};

/** How a list of pages is read. */
export type PagedList = {
  readonly name:
    | "conversations_by_creation"
    | "conversations_by_update"
    | "messages_by_creation"
    | "messages_of_conversation";
  readonly order: (shape: RangeShape) => RowOrder;
  readonly candidates: (shape: RangeShape) => Candidates;
  readonly page: (shape: PageShape) => string;
  /** true: every key in the range is a record, unless it has several dates. */
  readonly everyKeyIsLive: boolean;
};

export const PAGED_LISTS = {
  conversationsByCreation: {
    name: "conversations_by_creation",
    order: conversationOrder,
    candidates: conversationCandidates,
    page: conversationsByCreation,
    everyKeyIsLive: true,
  },
  conversationsByUpdate: {
    name: "conversations_by_update",
    order: updateOrder,
    candidates: updateCandidates,
    page: conversationsByUpdate,
    everyKeyIsLive: false,
  },
  messagesByCreation: {
    name: "messages_by_creation",
    order: messageOrder,
    candidates: messageCandidates,
    page: messagesByCreation,
    everyKeyIsLive: true,
  },
  messagesOfConversation: {
    name: "messages_of_conversation",
    order: conversationMessageOrder,
    candidates: conversationMessageCandidates,
    page: messagesOfConversation,
    everyKeyIsLive: false,
  },
} as const satisfies Readonly<Record<string, PagedList>>;

const parametersOf = (query: MessagePageQuery): Parameters => ({
  client: query.clientId,
  since: query.since,
  to: query.to,
  after_date: query.after?.date ?? -1,
  after_id: query.after?.id ?? "",
  size: query.pageSize,
  reach: query.pageSize + (query.wholeTies ? TIE_EXTENSION : 0) + 1,
  conversation: query.conversationId ?? "",
});

const rangeShape = (query: MessagePageQuery): RangeShape => ({ positioned: query.after !== undefined });

const TEXT = " FORMAT TabSeparatedRaw";

/** Reads the end of the first `rows` rows of the window behind the position; see `boundOf`. */
export const boundStatement = (list: PagedList, query: MessagePageQuery, rows: number): PageStatement => ({
  name: `pages.bound_of_${list.name}`,
  sql: boundOf(list.order(rangeShape(query))) + TEXT,
  parameters: { ...parametersOf(query), rows },
  settings: { max_threads: 1 },
});

/**
 * Reads what the statement of a range has to heed; see `factsOf`. The parameter `noted` is 0 where it is not
 * known.
 */
export const factsStatement = (
  candidates: Candidates | null,
  parameters: Parameters,
  spread: boolean,
): PageStatement => ({
  name: "pages.facts",
  sql: factsOf(candidates, Number(parameters["noted"] ?? 0) > 0) + TEXT,
  parameters,
  settings: { max_threads: 1, ...spreadSettings(spread, false) },
});

/** Reads what may have to be heeded; see `doubtsAbout`. */
export const doubtsStatement = (
  candidates: Candidates,
  parameters: Parameters,
  spread: boolean,
): PageStatement => ({
  ...factsStatement(candidates, parameters, spread),
  name: "pages.doubts",
  sql: `${doubtsAbout(candidates)} FORMAT JSONCompactEachRow`,
});

/** Reads whether one of the records with these names in `record_dates` has several dates. */
export const severalStatement = (
  client: string,
  names: readonly string[],
  spread: boolean,
): PageStatement => ({
  name: "pages.several",
  sql: SOME_HAS_SEVERAL + TEXT,
  parameters: { client, names },
  settings: { max_threads: 1, ...spreadSettings(spread, false) },
});

/**
 * The records that a page looks at, and the parameters that the statements about them have; `at` as for
 * `pageStatement`.
 *
 * @param at.noted instant before which `moved_dates` knows all dates of records with several, µs; 0: unknown
 */
export const candidatesOfPage = (
  list: PagedList,
  query: MessagePageQuery,
  { bound, noted = 0 }: { readonly bound: number; readonly noted?: number },
): { readonly candidates: Candidates; readonly parameters: Parameters } => ({
  candidates: list.candidates(rangeShape(query)),
  parameters: { ...parametersOf(query), bound, noted },
});

/**
 * The query of a page.
 *
 * @param at.bound date up to which rows are looked at, µs
 * @param at.severalDates some of the records in the range have rows under several dates
 * @param at.hiding some records of the client are hidden
 * @param at.spread the tables are on several servers
 */
export const pageStatement = (
  list: PagedList,
  query: MessagePageQuery,
  at: {
    readonly bound: number;
    readonly severalDates?: boolean;
    readonly hiding?: boolean;
    readonly spread?: boolean;
  },
): PageStatement => {
  const { bound, severalDates = false, hiding = false, spread = false } = at;
  const shape = { ...rangeShape(query), wholeTies: query.wholeTies, severalDates, hiding, spread };
  return {
    name: `pages.${list.name}`,
    sql: list.page(shape),
    parameters: { ...parametersOf(query), bound },
    settings: {
      ...PAGE_SETTINGS,
      ...(list.name === "conversations_by_update" && TEXTS_LAST),
      ...spreadSettings(spread, severalDates),
      format_custom_row_between_delimiter: query.separator ?? ",",
    },
  };
};
