import type { ClickHouseClient } from "@clickhouse/client";
import { clusterNames } from "./cluster-names.ts";
import { connect, type WarehouseAccess } from "./connection.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** What a table consists of, on all servers of a cluster together. */
export type PartCount = {
  readonly table: string;
  readonly parts: number;
  /** Parts of the partition that has the most, on one server. */
  readonly inFullestPartition: number;
  readonly bytes: number;
};

/** Active parts of the tables. Throws `WarehouseError`. */
export type PartCounts = { read(): Promise<PartCount[]>; close(): Promise<void> };

/** Shorter than a scrape may take. */
const TIMEOUT_MS = 5_000;

/** `url`: of a user that may read `system.parts`. */
export function createPartCounts(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): PartCounts {
  const { cluster } = deps.topology;
  const { system } = clusterNames(deps.topology);
  // Metrics name tables as queries do.
  const table = cluster === null ? "table" : "replaceRegexpOne(table, '_local$', '')";
  const client: ClickHouseClient = connect({ ...deps, maxOpenConnections: 1, requestTimeoutMs: TIMEOUT_MS });
  return {
    async read() {
      try {
        const result = await client.query({
          query: `SELECT ${table} AS name, toFloat64(sum(n)) AS parts, toFloat64(max(n)) AS inFullestPartition,
              toFloat64(sum(b)) AS bytes
            FROM (SELECT hostName() AS host, tcpPort() AS port, table, partition_id, count() AS n, sum(bytes_on_disk) AS b
              FROM ${system("parts")}
              WHERE database = currentDatabase() AND active GROUP BY host, port, table, partition_id)
            GROUP BY name ORDER BY name`,
          format: "JSONEachRow",
        });
        const rows = await result.json<Omit<PartCount, "table"> & { name: string }>();
        return rows.map(({ name, ...counts }) => ({ table: name, ...counts }));
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
}
