import type { ClickHouseSettings } from "@clickhouse/client";
import type { ClusterNames } from "../session/cluster-names.ts";
import type { Session } from "../session/session.ts";

/** Rows of one table; `condition` is SQL with `{name:Type}` for each of `parameters`. */
export type RowSelection = {
  readonly table: string;
  readonly condition: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
};

/**
 * Deletes rows. Every method resolves when no query sees them any more.
 *
 * @throws WarehouseError
 */
export type Deletion = {
  /** Hides the rows at once; merges remove their bytes later. */
  mask(rows: RowSelection, signal?: AbortSignal): Promise<void>;
  /** Rewrites the parts that hold the rows, so that no active part has their bytes. */
  erase(rows: RowSelection, signal?: AbortSignal): Promise<void>;
  /** Rewrites the parts of a partition without their masked rows, which `erase` does not find. */
  dropMasked(table: string, partition: string, signal?: AbortSignal): Promise<void>;
};

/** Lets a query read masked rows that are still stored, too. */
export const WITH_HIDDEN: ClickHouseSettings = { apply_deleted_mask: 0 };

/** Tables with a projection: it still shows rows that a lightweight DELETE has masked in the table. */
export const WITH_PROJECTION: ReadonlySet<string> = new Set(["messages"]);

/**
 * SQL that hides rows of a table from all queries in the cheapest way: a lightweight DELETE, or a mutation
 * where a projection would still show the rows.
 *
 * @param partition id of the partition to search; absent: all
 */
export function hidingStatement(
  table: string,
  names: ClusterNames,
  condition: string,
  partition?: string,
): string {
  const target = names.target(table);
  const place = partition === undefined ? "" : `IN PARTITION ID '${partition}' `;
  return WITH_PROJECTION.has(table)
    ? `ALTER TABLE ${target} DELETE ${place}WHERE ${condition}`
    : `DELETE FROM ${target} ${place}WHERE ${condition}`;
}

/** @param deps.session of the user for jobs */
export function createDeletion(deps: { readonly session: Session }): Deletion {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      // 2: wait for all replicas.
      mutations_sync: "2",
      lightweight_deletes_sync: "2",
      // Allows subqueries in mutations. They read the keys of the job, which do not change while it runs.
      allow_nondeterministic_mutations: 1,
    },
  });
  const { names } = session;

  return {
    mask: ({ table, condition, parameters }, signal) =>
      session.commandEverywhere("deletion.mask", hidingStatement(table, names, condition), {
        parameters,
        signal,
      }),
    erase: ({ table, condition, parameters }, signal) =>
      session.commandEverywhere(
        "deletion.erase",
        `ALTER TABLE ${names.target(table)} DELETE WHERE ${condition}`,
        { parameters, signal },
      ),
    dropMasked: (table, partition, signal) =>
      session.commandEverywhere(
        "deletion.drop_masked",
        `ALTER TABLE ${names.target(table)} APPLY DELETED MASK IN PARTITION ID '${partition}'`,
        { signal },
      ),
  };
}
