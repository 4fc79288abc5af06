import { onCluster, type Topology } from "../schema/migration-template.ts";

export type ClusterNames = {
  readonly cluster: string | null;
  /** With the rows: on a cluster behind the distributed table. */
  local(table: string): string;
  /** For statements to every server; without Keeper each shard gets them. */
  target(table: string): string;
  system(table: string): string;
};

export const clusterNames = (topology: Topology): ClusterNames => {
  const { cluster } = topology;
  if (cluster === null) {
    return {
      cluster,
      local: (table) => table,
      target: (table) => table,
      system: (table) => `system.${table}`,
    };
  }
  return {
    cluster,
    local: (table) => `${table}_local`,
    target: (table) => `${table}_local ${onCluster(topology)}`,
    system: (table) => `clusterAllReplicas('${cluster}', system.${table})`,
  };
};
