import { clusterNames } from "./cluster-names.ts";
import type { WarehouseAccess } from "./connection.ts";
import { createEveryServer } from "./every-server.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** Rows of one table; `condition` is SQL with `{name:Type}` for each of `parameters`. */
export type RowSelection = {
  readonly table: string;
  readonly condition: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
};

/** Deletes rows; both resolve when no query sees them any more. Throws `WarehouseError`. */
export type Deletion = {
  /** Hides the rows at once; merges remove their bytes later. */
  mask(rows: RowSelection, signal?: AbortSignal): Promise<void>;
  /** Rewrites the parts that hold the rows, so that no active part has their bytes. */
  erase(rows: RowSelection, signal?: AbortSignal): Promise<void>;
  /** Rewrites the parts of a partition without their masked rows, which are no rows for `erase`. */
  dropMasked(table: string, partition: string, signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

/** A projection goes on showing rows that a lightweight DELETE has masked in its table. */
const WITH_PROJECTION: ReadonlySet<string> = new Set(["messages"]);

/**
 * The statement that takes rows of a table out of sight, in the cheapest way that no query can look behind.
 * @param partition the id of the only one that is looked at
 */
export function hidingStatement(
  table: string,
  topology: Topology,
  condition: string,
  partition?: string,
): string {
  const target = clusterNames(topology).target(table);
  const place = partition === undefined ? "" : `IN PARTITION ID '${partition}' `;
  return WITH_PROJECTION.has(table)
    ? `ALTER TABLE ${target} DELETE ${place}WHERE ${condition}`
    : `DELETE FROM ${target} ${place}WHERE ${condition}`;
}

/** `url`: `http://user:password@host:port/database` of the user for jobs. */
export function createDeletion(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): Deletion {
  const { topology } = deps;
  const servers = createEveryServer({
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 3_600_000,
    settings: {
      // 2: on all replicas.
      mutations_sync: "2",
      lightweight_deletes_sync: "2",
      // The keys of a job lie in a table that does not change while it runs.
      allow_nondeterministic_mutations: 1,
    },
  });
  const { target } = clusterNames(topology);

  async function command(
    query: string,
    parameters: RowSelection["parameters"],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    try {
      await servers.command({
        query,
        ...(parameters === undefined ? {} : { query_params: parameters }),
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  return {
    mask: ({ table, condition, parameters }, signal) =>
      command(hidingStatement(table, topology, condition), parameters, signal),
    erase: ({ table, condition, parameters }, signal) =>
      command(`ALTER TABLE ${target(table)} DELETE WHERE ${condition}`, parameters, signal),
    dropMasked: (table, partition, signal) =>
      command(
        `ALTER TABLE ${target(table)} APPLY DELETED MASK IN PARTITION ID '${partition}'`,
        undefined,
        signal,
      ),
    close: () => servers.close(),
  };
}
