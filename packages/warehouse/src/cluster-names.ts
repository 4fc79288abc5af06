import { onCluster, type Topology } from "./migration-template.ts";

/** How statements name what lies on one server or on all of a cluster. */
export type ClusterNames = {
  /** The table that holds the rows. */
  local(table: string): string;
  /** Behind a name: where a statement runs; empty on a single server, and where `EveryServer` tells each shard. */
  readonly on: string;
  /** The same as one: the table that a statement changes, and where. */
  target(table: string): string;
  /** A table of the server itself; on a cluster of all its replicas. */
  system(table: string): string;
};

export const clusterNames = (topology: Topology): ClusterNames => {
  const { cluster } = topology;
  if (cluster === null) {
    return {
      local: (table) => table,
      on: "",
      target: (table) => table,
      system: (table) => `system.${table}`,
    };
  }
  const on = onCluster(topology);
  return {
    local: (table) => `${table}_local`,
    on,
    target: (table) => `${table}_local ${on}`,
    system: (table) => `clusterAllReplicas('${cluster}', system.${table})`,
  };
};
