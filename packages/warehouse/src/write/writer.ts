import type { WriteTicket } from "@conversation-export/domain";
import type { Session } from "../session/session.ts";
import type { TableInsert } from "./batch.ts";
import { createColumnTypes } from "./column-types.ts";
import { endsTooEarly, toWarehouseError, WarehouseError } from "../session/warehouse-error.ts";
import { fence, fenced, uploadPrefix } from "./write-ticket.ts";

export type Writer = {
  /** `ticket`: its stamp is in the rows. @throws WarehouseError; `isStaleTicket`: another ticket is needed */
  insert(insert: TableInsert, ticket: WriteTicket, signal?: AbortSignal): Promise<void>;
};

export function createWriter(deps: { readonly session: Session }): Writer {
  const session = deps.session.with({
    settings: {
      // Each INSERT is one block, acknowledged when written; versions make repetitions harmless.
      async_insert: 0,
      insert_deduplicate: 0,
      // FINAL merges rows of equal keys anyway.
      optimize_on_insert: 0,
      input_format_parallel_parsing: 0,
    },
  });
  /** Data that ends too early may mean that a shard died, which is retryable. */
  const blameShard = async (
    table: string,
    error: WarehouseError,
    signal?: AbortSignal,
  ): Promise<WarehouseError> => {
    if (!endsTooEarly(error)) return error;
    try {
      const [found] = await session.rows<{ engine: string }>(
        "records.engine",
        "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = {table:String}",
        { parameters: { table }, signal },
      );
      if (found?.engine !== "Distributed") return error;
    } catch (other) {
      return toWarehouseError(other);
    }
    return new WarehouseError("warehouse_unavailable", error.causeName, true, error);
  };
  const typesOf = createColumnTypes({ session });

  const rowsOf = async (table: string, columns: readonly string[], signal?: AbortSignal): Promise<string> => {
    const types = await typesOf(table, columns, signal);
    // ClickHouse 25.8 does not take types from the table.
    const structure = columns.map((name, at) => `${name} ${types[at]}`).join(", ");
    return `SELECT * FROM input('${structure.replace(/['\\]/g, "\\$&")}')`;
  };

  return {
    async insert({ table, columns, body }, ticket, signal) {
      try {
        const rows = await rowsOf(table, columns, signal);
        const query = `INSERT INTO ${table} (${columns.join(", ")}) ${rows} WHERE ${fence(ticket)} FORMAT RowBinary`;
        await session.upload("records.insert", query, body, {
          settings: fenced("records.insert"),
          signal,
          queryPrefix: uploadPrefix(ticket.stamp),
        });
      } catch (error) {
        signal?.throwIfAborted();
        throw await blameShard(table, toWarehouseError(error), signal);
      }
    },
  };
}
