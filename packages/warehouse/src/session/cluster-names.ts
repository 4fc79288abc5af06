import { onCluster, type Topology } from "../schema/migration-template.ts";

export type ClusterNames = {
  /** null: a single server. */
  readonly cluster: string | null;
  /** The table with the rows; on a cluster behind the distributed one. */
  local(table: string): string;
  /** Empty on a single server and without Keeper, where each shard gets the statement. */
  readonly on: string;
  /** `local` and `on`: the table that a statement changes. */
  target(table: string): string;
  /** On a cluster that of all replicas. */
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
