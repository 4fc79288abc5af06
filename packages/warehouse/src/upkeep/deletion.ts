import type { ClickHouseSettings } from "@clickhouse/client";
import { READABLE_FIRST } from "@conversation-export/domain";
import type { Session } from "../session/session.ts";

/** `condition`: SQL with `{name:Type}` for each of `parameters`. */
export type RowSelection = {
  readonly table: string;
  readonly condition: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
};

/** Each resolves when no query sees the rows any more. @throws WarehouseError */
export type Deletion = {
  /** Merges remove the bytes later. `partition`: its id; default: all. */
  mask(rows: RowSelection & { readonly partition?: string | undefined }, signal?: AbortSignal): Promise<void>;
  /** Leaves the bytes in no active part. */
  erase(rows: RowSelection, signal?: AbortSignal): Promise<void>;
  /** Removes masked rows, which `erase` does not find. */
  dropMasked(table: string, partition: string, signal?: AbortSignal): Promise<void>;
};

export const WITH_HIDDEN: ClickHouseSettings = { apply_deleted_mask: 0 };

/** Projections still show rows that a lightweight DELETE has masked. */
export const NO_PROJECTIONS: ClickHouseSettings = { optimize_use_projections: 0 };

/** Tables from which rows are deleted otherwise. */
export const WITH_PROJECTION: ReadonlySet<string> = new Set(
  READABLE_FIRST.filter(({ hasProjection }) => hasProjection).map(({ name }) => name),
);

export function createDeletion(deps: { readonly session: Session }): Deletion {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      // 2: wait for all replicas.
      mutations_sync: "2",
      lightweight_deletes_sync: "2",
      // For subqueries: they read the job's keys, which do not change meanwhile.
      allow_nondeterministic_mutations: 1,
    },
  });
  const { names } = session;

  return {
    mask: ({ table, condition, parameters, partition }, signal) => {
      const target = names.target(table);
      // The cheapest that masks rows in all queries.
      const verb = WITH_PROJECTION.has(table) ? `ALTER TABLE ${target} DELETE` : `DELETE FROM ${target}`;
      const place = partition === undefined ? "" : `IN PARTITION ID '${partition}' `;
      const statement = `${verb} ${place}WHERE ${condition}`;
      return session.commandEverywhere("deletion.mask", statement, { parameters, signal });
    },
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
