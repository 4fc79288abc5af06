import { onCluster, type Topology } from "../schema/migration-template.ts";

export type ClusterNames = {
  readonly cluster: string | null;
  /** With the rows: on a cluster behind the distributed table. */
  local(table: string): string;
  /** Empty on a single server and without Keeper, where each shard gets the statement. */
  readonly on: string;
  target(table: string): string;
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
