import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { connect, type WarehouseAccess } from "./connection.ts";
import type { TableInsert } from "./batch.ts";
import { endsTooEarly, toWarehouseError, WarehouseError } from "./warehouse-error.ts";
import { settingsOf, type WriteTicket } from "./write-ticket.ts";

/** What ingest writes with. */
export type Writer = {
  /**
   * Resolves when ClickHouse has acknowledged the rows. With a `ticket` it refuses an INSERT that begins later than that
   * says. Throws `WarehouseError`.
   */
  insert(insert: TableInsert, signal?: AbortSignal, ticket?: WriteTicket): Promise<void>;
  ping(): Promise<void>;
  close(): Promise<void>;
};

/** Connects the writing user. `url`: `http://user:password@host:port/database`. */
export function createWriter(
  deps: WarehouseAccess & {
    readonly requestTimeoutMs?: number;
  },
): Writer {
  const client = connect({
    ...deps,
    settings: {
      // One INSERT is one block, written before it is acknowledged; versions make a repetition harmless.
      async_insert: 0,
      insert_deduplicate: 0,
      // Rows of one key are merged when they are read: sorting the block is enough.
      optimize_on_insert: 0,
      input_format_parallel_parsing: 0,
    },
  });
  /** Into a distributed table the rows are sent on: that they end too early may be the fault of a shard that dies. */
  const blameShard = async (
    table: string,
    error: WarehouseError,
    signal?: AbortSignal,
  ): Promise<WarehouseError> => {
    if (!endsTooEarly(error)) return error;
    try {
      const result = await client.query({
        query:
          "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = {table:String}",
        query_params: { table },
        format: "JSONEachRow",
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
      const [found] = await result.json<{ engine: string }>();
      if (found?.engine !== "Distributed") return error;
    } catch (other) {
      return toWarehouseError(other);
    }
    return new WarehouseError("warehouse_unavailable", error.causeName, true, error);
  };
  return {
    async insert({ table, columns, body }, signal, ticket) {
      try {
        const result = await client.exec({
          query: `INSERT INTO ${table} (${columns.join(", ")}) FORMAT RowBinary`,
          values: Readable.from([body], { objectMode: false }),
          ...(signal === undefined ? {} : { abort_signal: signal }),
          ...(ticket === undefined ? {} : { clickhouse_settings: settingsOf(ticket) }),
        });
        result.stream.resume();
        await finished(result.stream);
      } catch (error) {
        throw await blameShard(table, toWarehouseError(error), signal);
      }
    },
    async ping() {
      const result = await client.ping({ select: true });
      if (!result.success) throw toWarehouseError(result.error);
    },
    close: () => client.close(),
  };
}
