import type { Session } from "../../session/session.ts";

/** Summed over all servers. */
export type PartCount = {
  readonly table: string;
  readonly parts: number;
  /** On one server. */
  readonly inFullestPartition: number;
  readonly bytes: number;
};

/** @throws WarehouseError */
export type PartCounts = { read(): Promise<PartCount[]> };

/** Shorter than the timeout of a metrics scrape. */
const TIMEOUT_MS = 5_000;

export function createPartCounts(deps: { readonly session: Session }): PartCounts {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  const { cluster, system } = session.names;
  // Metrics use the table names of queries, without `_local`.
  const table = cluster === null ? "table" : "replaceRegexpOne(table, '_local$', '')";
  return {
    async read() {
      const rows = await session.rows<Record<"name" | "total" | "fullest" | "size", string>>(
        "parts.count",
        `SELECT ${table} AS name, toString(sum(n)) AS total, toString(max(n)) AS fullest, toString(sum(b)) AS size
            FROM (SELECT hostName() AS host, tcpPort() AS port, table, partition_id, count() AS n, sum(bytes_on_disk) AS b
              FROM ${system("parts")}
              WHERE database = currentDatabase() AND active GROUP BY host, port, table, partition_id)
            GROUP BY name ORDER BY name`,
      );
      return rows.map(({ name, total, fullest, size }) => ({
        table: name,
        parts: Number(total),
        inFullestPartition: Number(fullest),
        bytes: Number(size),
      }));
    },
  };
}
