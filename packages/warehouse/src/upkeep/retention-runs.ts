import { randomUUID } from "node:crypto";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";
import { deletionsUnderWay } from "./deletions-under-way.ts";
import { type Alive, createJobKeys, heldRun } from "./job-keys.ts";

const PREFIX = "retention-";

/** SELECT of the end users whom `{runs:Array(String)}` have noted. */
const END_USERS = `SELECT client_id, 'end_user' AS kind, id, date_created FROM job_keys AS k
  WHERE run_id IN {runs:Array(String)} AND k.kind = 'end_user'`;

/**
 * Runs of retention with their keys in `job_keys`, of which those of end users stay until readers of changes
 * were told.
 */
export type RetentionRuns = {
  /** Begins a run; returns its name. */
  begin(signal?: AbortSignal): Promise<string>;
  /** @throws ServiceError `keys_lost` (retryable) */
  assertKept(run: string): Promise<void>;
  /**
   * Ends a run and removes its keys. What it cannot do is left to a sweep.
   *
   * @param told false: its end users may be deleted, and readers were not told
   * @throws ServiceError `deletion_under_way` (retryable)
   */
  end(run: string, told: boolean): Promise<void>;
  /** Leaves a run to a sweep. */
  leave(run: string): void;
  /**
   * Ends runs of dead processes, and those of this one that could not end.
   *
   * @throws ServiceError `deletion_under_way` (retryable)
   */
  sweep(alive: Alive, signal?: AbortSignal): Promise<void>;
};

export const createRetentionRuns = (deps: {
  readonly session: Session;
  /** Tells readers of changes about records whose rows are gone. */
  readonly tell: (
    source: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ) => Promise<void>;
  readonly holder: string;
}): RetentionRuns => {
  const jobKeys = createJobKeys(deps);
  /** Runs of this process that have not ended. */
  const ownRuns = new Set<string>();

  /**
   * The rows of these end users may be gone, or go when a deletion that outlived its statement is done. Told
   * before that, readers would be given live profiles, and hear of nothing later.
   */
  const endUntold = async (runs: readonly string[], signal?: AbortSignal): Promise<void> => {
    if ((await deletionsUnderWay(deps.session, ["end_users"], { signal })).length > 0) {
      const message = `end users of ${runs.length} runs are told when no deletion of end_users is under way`;
      throw new ServiceError("deletion_under_way", message, { retryable: true });
    }
    await deps.tell(END_USERS, { runs }, signal);
    for (const run of runs) await jobKeys.forget(run);
  };

  return {
    begin: async (signal) => {
      const run = heldRun(PREFIX, deps.holder, randomUUID());
      ownRuns.add(run);
      await jobKeys.begin(run, signal);
      return run;
    },
    assertKept: jobKeys.assertKept,
    end: async (run, told) => {
      try {
        await (told ? jobKeys.forget(run) : endUntold([run]));
      } finally {
        ownRuns.delete(run);
      }
    },
    leave: (run) => void ownRuns.delete(run),
    sweep: async (alive, signal) => {
      const runs = await jobKeys.dead(PREFIX, deps.holder, alive);
      const over = runs.filter((run) => !ownRuns.has(run));
      if (over.length > 0) await endUntold(over, signal);
    },
  };
};
