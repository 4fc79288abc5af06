import type { Readable } from "node:stream";
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import { linkBoundsOf, rateLimitsOf } from "./client-store.ts";
import { connect, type WarehouseAccess } from "./connection.ts";
import { createLookAhead } from "./look-ahead.ts";
import { conversationLines, messageLines, stepEnd } from "./line-sql.ts";
import type { ApiClient, MessagePageQuery, Page, PageQuery, Reader, WindowLines } from "./page.ts";
import {
  conversationsByCreation,
  conversationsByUpdate,
  countMessages,
  countUpdates,
  endUsers,
  messagesByCreation,
  messagesOfConversation,
  type PageShape,
} from "./page-sql.ts";
import {
  type HeadAndRecords,
  type PageHead,
  parseEndUserHead,
  parsePageHead,
  passLines,
  splitHead,
} from "./page-stream.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** How many records a page may grow by when one instant alone is larger than a page. */
const TIE_EXTENSION = 10_000;
/** Rows of the update index for each record, of a client of whom nothing is known yet. */
const INITIAL_UPDATES = 5;
/** Few messages change their conversation. */
const MESSAGES_PER_RECORD = 1.15;
/** A page that finds too few live rows among its candidates looks as many times further. */
const CANDIDATE_FACTOR = 4;
/** Pages are given minutes; what stands before every request is not. */
const LOOKUP_TIMEOUT_MS = 5_000;

const PAGE_SETTINGS: ClickHouseSettings = {
  format_custom_escaping_rule: "Raw",
  format_custom_field_delimiter: "",
  format_custom_row_before_delimiter: "",
  format_custom_row_after_delimiter: "",
  format_custom_row_between_delimiter: ",",
  // A key lies in one partition only, for the partition is made of a column of the key.
  do_not_merge_across_partitions_select_final: 1,
  // A skip index must not hide the newest version of a row.
  use_skip_indexes_if_final: 1,
  use_skip_indexes_if_final_exact_mode: 1,
  query_plan_optimize_lazy_final: 0,
  // The keys of a page and its records come from the same state of a table.
  enable_shared_storage_snapshot_in_query: 1,
  cancel_http_readonly_queries_on_client_close: 1,
};

/**
 * For tables that are spread over servers. What one part of a query has found is there when a later part looks for it:
 * each is sent when its turn comes, to the server itself too, and reads what stands there then.
 */
const SPREAD_SETTINGS: ClickHouseSettings = {
  enable_shared_storage_snapshot_in_query: 0,
  prefer_localhost_replica: 0,
  async_query_sending_for_remote: 0,
  query_plan_join_swap_table: "false",
  // All rows of a record lie on one shard.
  distributed_product_mode: "local",
};

/** The versions that are live, of all shards, come before the update index is read. */
const LIVE_FIRST: ClickHouseSettings = { distributed_product_mode: "global" };

/** Many enough that the start of a step does not count. */
const STEP_ROWS = 40_000;

const LINE_SETTINGS: ClickHouseSettings = {
  ...PAGE_SETTINGS,
  format_custom_row_between_delimiter: "",
  format_custom_row_after_delimiter: "\n",
  // In the order of the table, so that nothing is sorted.
  join_algorithm: "hash",
  max_bytes_ratio_before_external_join: 0,
};

// Keys of a window come sorted from the table: no other way of grouping them is as fast.
const IN_ORDER: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

type Parameters = Readonly<Record<string, string | number>>;

function parametersOf(query: PageQuery) {
  return {
    client: query.clientId,
    since: query.since,
    to: query.to,
    after_date: query.after?.date ?? -1,
    after_id: query.after?.id ?? "",
    size: query.pageSize,
    reach: query.pageSize + (query.wholeTies ? TIE_EXTENSION : 0) + 1,
  };
}

function shapeOf(query: PageQuery, spread: boolean): PageShape {
  return { positioned: query.after !== undefined, wholeTies: query.wholeTies, spread };
}

const KEY_AND_CLIENT = `SELECT k.key_id AS key_id, k.client_id AS client_id, k.scopes AS scopes,
    c.client_id = '' OR c.deleted AS deleted, c.link_bounds AS link_bounds, c.rate_limits AS rate_limits
  FROM (SELECT * FROM api_keys FINAL WHERE key_hash = {hash:String}) AS k
  LEFT JOIN (SELECT * FROM clients FINAL) AS c ON c.client_id = k.client_id
  WHERE NOT k.revoked`;

type StoredKeyAndClient = {
  readonly key_id: string;
  readonly client_id: string;
  readonly scopes: string[];
  readonly deleted: boolean | number;
  readonly link_bounds: string;
  readonly rate_limits: Record<string, string>;
};

function toApiClient(row: StoredKeyAndClient): ApiClient {
  return {
    clientId: row.client_id,
    keyId: row.key_id,
    scopes: row.scopes,
    clientDeleted: Boolean(row.deleted),
    linkBounds: linkBoundsOf(row.link_bounds),
    rateLimits: rateLimitsOf(row.rate_limits),
  };
}

function toPage({ head, records }: HeadAndRecords<PageHead>): Page {
  if (head === null) return { rows: 0, next: null, nextIsWhole: false, records };
  return {
    rows: head.rows,
    next: head.more ? head.last : null,
    nextIsWhole: head.lastIsWhole,
    records,
  };
}

const openPage = (stream: Readable) => splitHead(stream, parsePageHead);
const openEndUsers = (stream: Readable) => splitHead(stream, parseEndUserHead);

/** One page query as it is sent: for measuring it, or for EXPLAIN. */
export type PageStatement = {
  readonly sql: string;
  readonly parameters: Parameters;
  readonly settings: ClickHouseSettings;
};

/** The query of a page of conversations by date_created. `spread`: of tables on several servers. */
export function conversationsByCreationStatement(query: PageQuery, spread = false): PageStatement {
  const sql = conversationsByCreation(shapeOf(query, spread));
  return statementOf(sql, query, parametersOf(query), IN_ORDER, spread);
}

const messageCandidates = ({ pageSize }: PageQuery): number =>
  Math.ceil((pageSize + 1) * MESSAGES_PER_RECORD);

/** The query of a page of messages of one conversation, which looks at so many that may be its own. */
export function messagesOfConversationStatement(
  query: PageQuery & { readonly conversationId: string },
  candidates = messageCandidates(query),
  spread = false,
): PageStatement {
  const parameters = { ...parametersOf(query), conversation: query.conversationId, candidates };
  return statementOf(messagesOfConversation(shapeOf(query, spread)), query, parameters, {}, spread);
}

function statementOf(
  sql: string,
  { separator = "," }: PageQuery,
  parameters: Parameters,
  settings: ClickHouseSettings,
  spread: boolean,
): PageStatement {
  const between = { format_custom_row_between_delimiter: separator };
  const ofSpread = spread ? SPREAD_SETTINGS : {};
  return { sql, parameters, settings: { ...PAGE_SETTINGS, ...ofSpread, ...settings, ...between } };
}

/** Connects the reading user. `url`: `http://user:password@host:port/database`. */
export function createReader(
  deps: WarehouseAccess & {
    readonly maxOpenConnections?: number;
    /** For keys and pings, which have connections of their own. */
    readonly lookupTimeoutMs?: number;
    /** Rows, of all versions, in a step of a window that is read as lines. */
    readonly stepRows?: number;
  },
): Reader {
  const { url, ca, application, stepRows = STEP_ROWS } = deps;
  const { maxOpenConnections = 32, lookupTimeoutMs = LOOKUP_TIMEOUT_MS } = deps;
  const client: ClickHouseClient = connect({ url, ca, application, maxOpenConnections });
  const updatesAhead = createLookAhead({ initial: INITIAL_UPDATES });
  // Pages that fill all connections keep no key waiting.
  const lookups: ClickHouseClient = connect({
    url,
    ca,
    application,
    requestTimeoutMs: lookupTimeoutMs,
    settings: { max_execution_time: Math.ceil(lookupTimeoutMs / 1000) },
  });

  let knownToBeSpread: Promise<boolean> | undefined;

  async function askWhetherSpread(): Promise<boolean> {
    try {
      const result = await lookups.query({
        query:
          "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'conversations'",
        format: "JSONEachRow",
      });
      const [table] = await result.json<{ engine: string }>();
      if (table === undefined) knownToBeSpread = undefined;
      return table?.engine === "Distributed";
    } catch (error) {
      knownToBeSpread = undefined;
      throw toWarehouseError(error);
    }
  }

  /** Whether the tables lie on several servers. */
  const isSpread = (): Promise<boolean> => (knownToBeSpread ??= askWhetherSpread());

  /** Sends a query and hands its response, as it flows, to `open`. */
  async function send<T>(
    { sql, parameters, settings }: PageStatement,
    open: (stream: Readable) => T | Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    try {
      // The client does not look at a signal that was given before.
      signal?.throwIfAborted();
      const { stream } = await client.exec({
        query: sql,
        query_params: parameters,
        clickhouse_settings: settings,
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
      return await open(stream);
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  /** The number in the first row, undefined when there is no row. */
  async function firstNumber(
    sql: string,
    parameters: Parameters,
    signal: AbortSignal | undefined,
  ): Promise<number | undefined> {
    try {
      signal?.throwIfAborted();
      const result = await client.query({
        query: sql,
        query_params: parameters,
        format: "TabSeparated",
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
      const text = await result.text();
      return text === "" ? undefined : Number(text);
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  // Superseded rows fill the candidates: look further until a record behind the page is found or the window ends.
  async function findAmong(
    first: number,
    statement: (candidates: number) => PageStatement,
    countSql: string,
    signal: AbortSignal | undefined,
  ): Promise<HeadAndRecords<PageHead>> {
    for (let candidates = first; ; candidates *= CANDIDATE_FACTOR) {
      const sent = statement(candidates);
      const found = await send(sent, openPage, signal);
      if (found.head === null) {
        const looked = (await firstNumber(countSql, sent.parameters, signal)) ?? 0;
        if (looked < candidates) return found;
      } else {
        // Nothing follows, or a record that does is known: a link never leads to an empty page.
        const { more, keysBehind } = found.head;
        if (!more || keysBehind) return found;
      }
      found.records.destroy();
    }
  }

  function linesOf(
    table: "conversations" | "messages",
    sqlOf: (shape: Pick<PageShape, "spread">) => string,
  ): WindowLines {
    const endSql = stepEnd(table);
    return {
      async stepEnd({ clientId, since, to, signal }) {
        const parameters = { client: clientId, since, to, rows: stepRows };
        const date = await firstNumber(endSql, parameters, signal);
        // An instant with more rows than a step is a step of its own.
        return date === undefined ? to : Math.max(date, since + 1);
      },
      async read({ clientId, since, to, signal }) {
        const parameters = { client: clientId, since, to };
        const spread = await isSpread();
        const settings = { ...LINE_SETTINGS, ...(spread ? SPREAD_SETTINGS : {}) };
        return send({ sql: sqlOf({ spread }), parameters, settings }, passLines, signal);
      },
    };
  }

  return {
    lines: {
      conversations: linesOf("conversations", conversationLines),
      messages: linesOf("messages", messageLines),
    },
    async conversationsByCreation(query) {
      const statement = conversationsByCreationStatement(query, await isSpread());
      return toPage(await send(statement, openPage, query.signal));
    },
    async conversationsByUpdate(query) {
      const { clientId, pageSize, signal } = query;
      const spread = await isSpread();
      const shape = shapeOf(query, spread);
      const settings = spread ? LIVE_FIRST : {};
      const sql = conversationsByUpdate(shape);
      const parameters = parametersOf(query);
      const found = await findAmong(
        updatesAhead.candidates(clientId, pageSize),
        (candidates) => statementOf(sql, query, { ...parameters, candidates }, settings, spread),
        countUpdates(shape.positioned),
        signal,
      );
      if (found.head?.more) updatesAhead.learn(clientId, found.head.rows, found.head.needed);
      return toPage(found);
    },
    async messagesByCreation(query: MessagePageQuery) {
      const { conversationId, signal } = query;
      const spread = await isSpread();
      const shape = shapeOf(query, spread);
      if (conversationId !== undefined) {
        const found = await findAmong(
          messageCandidates(query),
          (candidates) => messagesOfConversationStatement({ ...query, conversationId }, candidates, spread),
          countMessages(shape.positioned),
          signal,
        );
        return toPage(found);
      }
      const sql = messagesByCreation(shape);
      const statement = statementOf(sql, query, parametersOf(query), IN_ORDER, spread);
      return toPage(await send(statement, openPage, query.signal));
    },
    async endUsers({ clientId, from = "", limit, externalId, signal }) {
      const sql = endUsers({ selected: externalId !== undefined });
      const parameters = { client: clientId, from, size: limit, external_id: externalId ?? "" };
      const settings = { ...PAGE_SETTINGS, ...IN_ORDER, ...((await isSpread()) ? SPREAD_SETTINGS : {}) };
      const statement = { sql, parameters, settings };
      const { head, records } = await send(statement, openEndUsers, signal);
      return { rows: head?.rows ?? 0, next: head?.next ?? null, records };
    },
    async findKey(hash): Promise<ApiClient | null> {
      try {
        const result = await lookups.query({
          query: KEY_AND_CLIENT,
          query_params: { hash },
          format: "JSONEachRow",
        });
        const [row] = await result.json<StoredKeyAndClient>();
        return row === undefined ? null : toApiClient(row);
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    async ping() {
      const result = await lookups.ping({ select: true });
      if (!result.success) throw toWarehouseError(result.error);
    },
    close: async () => {
      await client.close();
      await lookups.close();
    },
  };
}
