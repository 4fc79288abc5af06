import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import { linkBoundsOf } from "./client-store.ts";
import { connect } from "./connection.ts";
import type { ApiClient, MessagePageQuery, Page, PageQuery, Reader } from "./page.ts";
import {
  conversationsByCreation,
  conversationsByUpdate,
  countCandidates,
  messagesByCreation,
} from "./page-sql.ts";
import { type HeadAndRecords, splitHead } from "./page-stream.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** How many records a page may grow by when one instant alone is larger than a page. */
const TIE_EXTENSION = 10_000;
/** Superseded rows expected for each record of an updated page; a page that needs more looks as many times further. */
const CANDIDATE_FACTOR = 4;

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
  // On a cluster all rows of a record lie on one shard.
  distributed_product_mode: "local",
};

// Keys of a window come sorted from the table: no other way of grouping them is as fast.
const IN_ORDER: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

type Parameters = Record<string, string | number> & { readonly reach: number };

function parametersOf(query: PageQuery): Parameters {
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

function shapeOf(query: PageQuery): { positioned: boolean; wholeTies: boolean } {
  return { positioned: query.after !== undefined, wholeTies: query.wholeTies };
}

function toPage({ head, records }: HeadAndRecords): Page {
  if (head === null) return { rows: 0, next: null, nextIsWhole: false, records };
  return {
    rows: head.rows,
    next: head.more ? head.last : null,
    nextIsWhole: head.lastIsWhole,
    records,
  };
}

/** One page query as it is sent: for measuring it, or for EXPLAIN. */
export type PageStatement = {
  readonly sql: string;
  readonly parameters: Parameters;
  readonly settings: ClickHouseSettings;
};

/** The query of a page of conversations by date_created. */
export function conversationsByCreationStatement(query: PageQuery): PageStatement {
  return {
    sql: conversationsByCreation(shapeOf(query)),
    parameters: parametersOf(query),
    settings: { ...PAGE_SETTINGS, ...IN_ORDER },
  };
}

/** Connects the reading user. `url`: `http://user:password@host:port/database`. */
export function createReader(deps: {
  readonly url: string;
  readonly application: string;
  readonly maxOpenConnections?: number;
}): Reader {
  const client: ClickHouseClient = connect({ ...deps, maxOpenConnections: deps.maxOpenConnections ?? 32 });

  async function pageQuery(
    sql: string,
    parameters: Parameters,
    settings: ClickHouseSettings,
    signal: AbortSignal | undefined,
  ): Promise<HeadAndRecords> {
    try {
      // The client does not look at a signal that was given before.
      signal?.throwIfAborted();
      const { stream } = await client.exec({
        query: sql,
        query_params: parameters,
        clickhouse_settings: { ...PAGE_SETTINGS, ...settings },
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
      return await splitHead(stream);
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  async function candidatesUpTo(parameters: Parameters, positioned: boolean): Promise<number> {
    try {
      const result = await client.query({
        query: countCandidates(positioned),
        query_params: parameters,
        format: "TabSeparated",
      });
      return Number(await result.text());
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  return {
    async conversationsByCreation(query) {
      const { sql, parameters } = conversationsByCreationStatement(query);
      return toPage(await pageQuery(sql, parameters, IN_ORDER, query.signal));
    },
    async conversationsByUpdate(query) {
      const shape = shapeOf(query);
      const sql = conversationsByUpdate(shape);
      const parameters = parametersOf(query);
      // Superseded rows fill the candidates: look further until a record behind the page is found or the window ends.
      for (
        let candidates = parameters.reach + query.pageSize * CANDIDATE_FACTOR;
        ;
        candidates *= CANDIDATE_FACTOR
      ) {
        const found = await pageQuery(sql, { ...parameters, candidates }, {}, query.signal);
        if (found.head === null) {
          if ((await candidatesUpTo({ ...parameters, candidates }, shape.positioned)) < candidates) {
            return toPage(found);
          }
        } else {
          // Nothing follows, or a record that does is known: a link never leads to an empty page.
          const { more, keysBehind } = found.head;
          if (!more || keysBehind) return toPage(found);
        }
        found.records.destroy();
      }
    },
    async messagesByCreation(query: MessagePageQuery) {
      const ofConversation = query.conversationId !== undefined;
      const sql = messagesByCreation({ ...shapeOf(query), ofConversation });
      const parameters = { ...parametersOf(query), conversation: query.conversationId ?? "" };
      return toPage(await pageQuery(sql, parameters, IN_ORDER, query.signal));
    },
    async findKey(hash): Promise<ApiClient | null> {
      try {
        const result = await client.query({
          query: `SELECT k.key_id AS key_id, k.client_id AS client_id, k.scopes AS scopes,
              c.client_id = '' OR c.deleted AS deleted, c.link_bounds AS link_bounds
            FROM (SELECT * FROM api_keys FINAL WHERE key_hash = {hash:String}) AS k
            LEFT JOIN (SELECT * FROM clients FINAL) AS c ON c.client_id = k.client_id
            WHERE NOT k.revoked`,
          query_params: { hash },
          format: "JSONEachRow",
        });
        const rows = await result.json<{
          key_id: string;
          client_id: string;
          scopes: string[];
          deleted: boolean | number;
          link_bounds: string;
        }>();
        const row = rows[0];
        if (row === undefined) return null;
        return {
          clientId: row.client_id,
          keyId: row.key_id,
          scopes: row.scopes,
          clientDeleted: Boolean(row.deleted),
          linkBounds: linkBoundsOf(row.link_bounds),
        };
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    async ping() {
      const result = await client.ping({ select: true });
      if (!result.success) throw toWarehouseError(result.error);
    },
    close: () => client.close(),
  };
}
