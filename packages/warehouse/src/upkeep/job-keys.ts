import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";

/** Keys older than this belong to a process that died: no step of a job takes longer. */
const LEFT_BEHIND = "INTERVAL 1 HOUR";
/** Kind of the row by which a run sees that its keys are all there. */
const BEGUN = "begun";

/**
 * The keys of runs in `job_keys`. Every run has its own partition, so dropping it removes the rows at once
 * and from all active parts.
 */
export type JobKeys = {
  /** Begins a run whose keys are checked by `assertKept`. */
  begin(run: string, signal?: AbortSignal): Promise<void>;
  /**
   * Proves that no key of the run has been removed since `begin`, so that every statement in between saw all
   * that were noted before it.
   * @throws ServiceError `keys_lost` (retryable)
   */
  assertKept(run: string): Promise<void>;
  forget(run: string): Promise<void>;
  /**
   * Removes the keys of runs that begin with `prefix` and were noted more than an hour ago: their process
   * died.
   */
  forgetLeft(prefix: string): Promise<void>;
  /**
   * Removes the keys of runs `<prefix><holder>/…` whose holder is not alive, and of earlier runs of `own`. A
   * run that was only paused sees it by `assertKept`.
   * @param alive null: it is not known who is alive, and nothing is removed
   */
  forgetDead(prefix: string, own: string, alive: ReadonlySet<string> | null): Promise<void>;
};

/** Name of a run whose keys are removed when `holder` is not alive any more. */
export const heldRun = (prefix: string, holder: string, id: string): string => `${prefix}${holder}/${id}`;

export const createJobKeys = ({ session }: { readonly session: Session }): JobKeys => {
  const target = session.names.target("job_keys");

  const forget = (run: string): Promise<void> =>
    session.commandEverywhere("job_keys.forget", `ALTER TABLE ${target} DROP PARTITION {run:String}`, {
      parameters: { run },
    });

  return {
    forget,
    begin: (run, signal) =>
      session.insert(
        "job_keys.begin",
        { table: "job_keys", rows: [{ run_id: run, kind: BEGUN }] },
        { settings: { async_insert: 0 }, signal },
      ),
    assertKept: async (run) => {
      const [row] = await session.rows<{ n: number }>(
        "job_keys.kept",
        `SELECT toUInt32(count()) AS n FROM job_keys WHERE run_id = {run:String} AND kind = '${BEGUN}'`,
        { parameters: { run } },
      );
      if (row?.n === 1) return;
      throw new ServiceError("keys_lost", "the keys of this run were removed while it was paused", {
        retryable: true,
      });
    },
    forgetLeft: async (prefix) => {
      const left = await session.rows<{ run: string }>(
        "job_keys.left",
        `SELECT DISTINCT run_id AS run FROM job_keys
          WHERE startsWith(run_id, {prefix:String}) AND added_at < now() - ${LEFT_BEHIND}`,
        { parameters: { prefix } },
      );
      for (const { run } of left) await forget(run);
    },
    forgetDead: async (prefix, own, alive) => {
      if (alive === null) return;
      const runs = await session.rows<{ run: string }>(
        "job_keys.runs",
        "SELECT DISTINCT run_id AS run FROM job_keys WHERE startsWith(run_id, {prefix:String})",
        { parameters: { prefix } },
      );
      for (const { run } of runs) {
        const [holder = ""] = run.slice(prefix.length).split("/");
        if (holder === own || !alive.has(holder)) await forget(run);
      }
    },
  };
};
