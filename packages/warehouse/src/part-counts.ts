import type { ClickHouseClient } from "@clickhouse/client";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** What a table consists of on the server that answers. */
export type PartCount = {
  readonly table: string;
  readonly parts: number;
  /** Parts of the partition that has the most. */
  readonly inFullestPartition: number;
  readonly bytes: number;
};

/** Active parts of the tables. Throws `WarehouseError`. */
export type PartCounts = { read(): Promise<PartCount[]>; close(): Promise<void> };

/** Shorter than a scrape may take. */
const TIMEOUT_MS = 5_000;

/** `url`: of a user that may read `system.parts`. */
export function createPartCounts(deps: WarehouseAccess): PartCounts {
  const client: ClickHouseClient = connect({ ...deps, maxOpenConnections: 1, requestTimeoutMs: TIMEOUT_MS });
  return {
    async read() {
      try {
        const result = await client.query({
          query: `SELECT table, toFloat64(sum(n)) AS parts, toFloat64(max(n)) AS inFullestPartition,
              toFloat64(sum(b)) AS bytes
            FROM (SELECT table, partition_id, count() AS n, sum(bytes_on_disk) AS b FROM system.parts
              WHERE database = currentDatabase() AND active GROUP BY table, partition_id)
            GROUP BY table ORDER BY table`,
          format: "JSONEachRow",
        });
        return await result.json<PartCount>();
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
}
