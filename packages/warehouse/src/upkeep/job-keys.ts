import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";

/** Kind of the rows by which a run sees that its keys are all there. */
const BEGUN = "begun";
/** So many that each of a few shards has some: each shard drops the keys of a run for itself. */
const BEGUN_ROWS = 64;
const OF_BEGUN = `job_keys WHERE run_id = {run:String} AND kind = '${BEGUN}'`;

/** Reads which holders of runs are alive. */
export type Alive = () => Promise<ReadonlySet<string>>;

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
  /** Names of the runs that begin with `prefix`. */
  runs(prefix: string): Promise<readonly string[]>;
  /**
   * Names of the runs `<prefix><holder>/…` whose holder is not alive, and of those of `own`.
   * @param own whose runs are all over; null: nobody's
   */
  dead(prefix: string, own: string | null, alive: Alive): Promise<readonly string[]>;
  /** Removes the keys of these runs. One that was only paused sees it by `assertKept`. */
  forgetDead(prefix: string, own: string | null, alive: Alive): Promise<void>;
};

/** Name of a run whose keys are removed when `holder` is not alive any more. */
export const heldRun = (prefix: string, holder: string, id: string): string => `${prefix}${holder}/${id}`;

/** SQL: the keys of the run are all there; false in a deletion that goes on behind their removal. */
export const KEYS_ARE_KEPT = `{run:String} IN (SELECT run_id FROM ${OF_BEGUN} GROUP BY run_id HAVING count() = ${BEGUN_ROWS})`;

export const createJobKeys = ({ session }: { readonly session: Session }): JobKeys => {
  const target = session.names.target("job_keys");

  const forget = (run: string): Promise<void> =>
    session.commandEverywhere("job_keys.forget", `ALTER TABLE ${target} DROP PARTITION {run:String}`, {
      parameters: { run },
    });

  const runs = async (prefix: string): Promise<string[]> => {
    const rows = await session.rows<{ run: string }>(
      "job_keys.runs",
      "SELECT DISTINCT run_id AS run FROM job_keys WHERE startsWith(run_id, {prefix:String})",
      { parameters: { prefix } },
    );
    return rows.map(({ run }) => run);
  };

  const dead: JobKeys["dead"] = async (prefix, own, alive) => {
    const found = await runs(prefix);
    // Behind the runs: whoever has begun one meanwhile is not in an older answer.
    const living = await alive();
    return found.filter((run) => {
      const [holder = ""] = run.slice(prefix.length).split("/");
      return holder === own || !living.has(holder);
    });
  };

  return {
    forget,
    begin: (run, signal) =>
      session.insert(
        "job_keys.begin",
        {
          table: "job_keys",
          rows: Array.from({ length: BEGUN_ROWS }, (_, at) => ({ run_id: run, kind: BEGUN, id: String(at) })),
        },
        { settings: { async_insert: 0 }, signal },
      ),
    assertKept: async (run) => {
      const [row] = await session.rows<{ n: number }>(
        "job_keys.kept",
        `SELECT toUInt32(count()) AS n FROM ${OF_BEGUN}`,
        { parameters: { run } },
      );
      if (row?.n === BEGUN_ROWS) return;
      throw new ServiceError("keys_lost", "the keys of this run were removed while it was paused", {
        retryable: true,
      });
    },
    runs,
    dead,
    forgetDead: async (prefix, own, alive) => {
      for (const run of await dead(prefix, own, alive)) await forget(run);
    },
  };
};
