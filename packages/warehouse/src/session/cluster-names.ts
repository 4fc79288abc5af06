import { onCluster, type Topology } from "../schema/migration-template.ts";

/** Names in statements for tables of a single server or of a cluster. */
export type ClusterNames = {
  /** null: a single server. */
  readonly cluster: string | null;
  /** The table that holds the rows; on a cluster the one behind the distributed table. */
  local(table: string): string;
  /**
   * `ON CLUSTER` clause; empty on a single server and without Keeper, where each shard gets the statement
   * itself.
   */
  readonly on: string;
  /** `local` and `on` together: the table that a statement changes, and on which servers. */
  target(table: string): string;
  /** A system table; on a cluster that of all replicas. */
  system(table: string): string;
};

export const clusterNames = (topology: Topology): ClusterNames => {
  const { cluster } = topology;
  if (cluster === null) {
    return {
      cluster,
      local: (table) => table,
      on: "",
      target: (table) => table,
      system: (table) => `system.${table}`,
    };
  }
  const on = onCluster(topology);
  return {
    cluster,
    local: (table) => `${table}_local`,
    on,
    target: (table) => `${table}_local ${on}`,
    system: (table) => `clusterAllReplicas('${cluster}', system.${table})`,
  };
};
