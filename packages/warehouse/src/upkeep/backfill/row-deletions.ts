import { setTimeout as sleep } from "node:timers/promises";
import {
  formatTimestampZ,
  type Micros,
  monthOf,
  type RecordTable,
  type RowKey,
  TABLE_FACTS,
} from "@conversation-export/domain";
import { isRetryable, retry, ServiceError } from "@conversation-export/runtime";
import type { Session } from "../../session/session.ts";
import { isSetupError } from "../../session/warehouse-error.ts";
import { hidingStatement } from "../deletion.ts";

/** A row to delete, with the record that it belongs to. */
export type WrongRow = { readonly clientId: string; readonly id: string; readonly row: RowKey };

/** Deletes single rows by key and version, in mutations that run in the background. */
export type RowDeletions = {
  /** Stores the keys of wrong rows under the name of the run. */
  note(run: string, wrong: readonly WrongRow[]): Promise<void>;
  /**
   * Submits the deletion of the noted rows of a table. It does not run while merges of the table are held.
   */
  submit(run: string, table: RecordTable, wrong: readonly WrongRow[]): Promise<void>;
  /** Pending deletions of a run, or of all runs. */
  waiting(run?: string): Promise<readonly { readonly table: string; readonly failed: 0 | 1 }[]>;
  /**
   * Resolves when no deletion of the run is pending.
   *
   * @throws ServiceError `deletion_failed`, retryable, when a deletion fails in ClickHouse
   */
  untilDone(run: string, signal: AbortSignal): Promise<void>;
  /** Cancels the pending deletions of a run, or of all runs. Rows that are not deleted yet stay. */
  end(run?: string): Promise<void>;
  /** Whether deletions of the run may be pending. */
  hasBegun(run: string): boolean;
  /** Notes that no deletion of the run is pending any more. */
  settle(run: string): void;
};

/** Prefix of run names, by which deletions and keys of earlier runs are found. */
export const BACKFILL_RUN = "backfill ";
/** Rows in more partitions than this are deleted by one statement for the whole table. */
const MAX_PARTITIONS = 12;
const KEYS_IN_INSERT = 50_000;
const ASK_EVERY_MS = 100;
const ANSWER_MS = 10_000;

const removalCondition = (table: RecordTable, keys: string): string => {
  const { id, keyDate: date } = TABLE_FACTS[table];
  const isHandoff = table === "handoffs";
  const columns = ["client_id", ...(date === null ? [] : [date]), id];
  const noted = ["client_id", ...(date === null ? [] : ["date_created"]), "id"];
  if (isHandoff) {
    columns.push("target", "toUInt8(target_kind)");
    noted.push("target", "target_kind");
  }
  columns.push("version");
  noted.push(isHandoff ? "version" : "toUInt128(version)");
  return `(${columns.join(", ")}) IN
    (SELECT ${noted.join(", ")} FROM ${keys} WHERE run_id = {run:String} AND kind = {table:String})`;
};

/** The id of a month's partition. */
const partitionOf = (date: Micros): string => {
  const month = monthOf(date);
  return String(Math.floor(month / 12) * 100 + (month % 12) + 1);
};

/** Partitions of the wrong rows of a table; null: too many, or the table has none. */
const partitionsOf = (table: RecordTable, wrong: readonly WrongRow[]): readonly string[] | null => {
  if (TABLE_FACTS[table].keyDate === null) return null;
  const partitions = new Set<string>();
  for (const { row } of wrong) if (row.table === table) partitions.add(partitionOf(row.date));
  return partitions.size > MAX_PARTITIONS ? null : [...partitions];
};

/**
 * @param deps.session with nondeterministic mutations allowed
 * @param deps.signal ends the wait for ClickHouse
 */
export const createRowDeletions = (deps: {
  readonly session: Session;
  readonly signal: AbortSignal;
}): RowDeletions => {
  const { session } = deps;
  const { local, on, system } = session.names;

  const note = async (run: string, wrong: readonly WrongRow[]): Promise<void> => {
    for (let at = 0; at < wrong.length; at += KEYS_IN_INSERT) {
      const rows = wrong.slice(at, at + KEYS_IN_INSERT).map(({ clientId, id, row }) => ({
        run_id: run,
        kind: row.table,
        client_id: clientId,
        id,
        date_created: formatTimestampZ(row.date),
        target: row.target,
        target_kind: row.targetKind,
        version: String(row.version),
      }));
      await session.insert("replace.note", { table: "job_keys", rows });
    }
  };

  /** Runs with deletions that may be pending. */
  const begun = new Set<string>();

  const submit = async (run: string, table: RecordTable, wrong: readonly WrongRow[]): Promise<void> => {
    const condition = removalCondition(table, local("job_keys"));
    begun.add(run);
    for (const partition of partitionsOf(table, wrong) ?? [undefined]) {
      const query = hidingStatement(table, session.names, condition, partition);
      await session.commandEverywhere("replace.delete", query, {
        parameters: { run, table },
        settings: { lightweight_deletes_sync: "0", mutations_sync: "0" },
      });
    }
  };

  const OF_RUNS = "database = currentDatabase() AND NOT is_done AND position(command, {runs:String}) > 0";
  /** Text by which mutation commands contain the run; without `run`, that of all runs. */
  const inCommand = (run?: string): string => (run === undefined ? `'${BACKFILL_RUN}` : `'${run}'`);

  const waiting = (run?: string): Promise<readonly { table: string; failed: 0 | 1 }[]> =>
    session.rows(
      "replace.mutations",
      // ABORTED is no failure: holding merges aborts running mutations, and they start again.
      `SELECT table, toUInt8(latest_fail_reason NOT IN ('') AND position(latest_fail_reason, 'ABORTED') = 0)
          AS failed
        FROM ${system("mutations")} WHERE ${OF_RUNS}`,
      { parameters: { runs: inCommand(run) } },
    );

  const untilDone = async (run: string, signal: AbortSignal): Promise<void> => {
    for (;;) {
      signal.throwIfAborted();
      const left = await waiting(run);
      if (left.length === 0) return;
      if (left.some(({ failed }) => failed === 1)) {
        // No cause: ClickHouse's message may quote a row.
        throw new ServiceError("deletion_failed", "ClickHouse could not delete rows yet", {
          retryable: true,
        });
      }
      await sleep(ASK_EVERY_MS, undefined, { signal });
    }
  };

  const end = (run?: string): Promise<void> =>
    retry(
      () =>
        session.commandEverywhere("replace.kill", `KILL MUTATION ${on} WHERE ${OF_RUNS} SYNC`, {
          parameters: { runs: inCommand(run) },
          timeoutMs: ANSWER_MS,
        }),
      {
        signal: deps.signal,
        maxMs: 1_000,
        retryable: (error) => isRetryable(error) && !isSetupError(error),
      },
    );

  return {
    note,
    submit,
    waiting,
    untilDone,
    end,
    hasBegun: (run) => begun.has(run),
    settle: (run) => begun.delete(run),
  };
};
