import type { Session } from "../session/session.ts";

/** Keys older than this belong to a process that died: no step of a job takes longer. */
const LEFT_BEHIND = "INTERVAL 1 HOUR";

/**
 * Removes the keys of runs from `job_keys`. Every run has its own partition, so dropping it removes the rows
 * at once and from all active parts.
 */
export type JobKeys = {
  forget(run: string): Promise<void>;
  /**
   * Removes the keys of runs that begin with `prefix` and were noted more than an hour ago: their process
   * died.
   */
  forgetLeft(prefix: string): Promise<void>;
};

export const createJobKeys = ({ session }: { readonly session: Session }): JobKeys => {
  const target = session.names.target("job_keys");

  const forget = (run: string): Promise<void> =>
    session.commandEverywhere("job_keys.forget", `ALTER TABLE ${target} DROP PARTITION {run:String}`, {
      parameters: { run },
    });

  return {
    forget,
    forgetLeft: async (prefix) => {
      const left = await session.rows<{ run: string }>(
        "job_keys.left",
        `SELECT DISTINCT run_id AS run FROM job_keys
          WHERE startsWith(run_id, {prefix:String}) AND added_at < now() - ${LEFT_BEHIND}`,
        { parameters: { prefix } },
      );
      for (const { run } of left) await forget(run);
    },
  };
};
