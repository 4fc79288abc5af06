import type { Topology } from "./migration-template.ts";

/** How statements name what lies on one server or on all of a cluster. */
export type ClusterNames = {
  /** The table that holds the rows. */
  local(table: string): string;
  /** Behind a name: where a statement runs; empty on a single server. */
  readonly on: string;
  /** The same as one: the table that a statement changes, and where. */
  target(table: string): string;
  /** A table of the server itself; on a cluster of all its replicas. */
  system(table: string): string;
};

export const clusterNames = ({ cluster }: Topology): ClusterNames =>
  cluster === null
    ? { local: (table) => table, on: "", target: (table) => table, system: (table) => `system.${table}` }
    : {
        local: (table) => `${table}_local`,
        on: `ON CLUSTER '${cluster}'`,
        target: (table) => `${table}_local ON CLUSTER '${cluster}'`,
        system: (table) => `clusterAllReplicas('${cluster}', system.${table})`,
      };
