import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";

/** Rows of this kind show that no row of a run was removed. */
export const BEGUN = "begun";
/** Enough for each of a few shards: each drops a run's rows for itself. */
export const BEGUN_ROWS = 64;
const OF_BEGUN = `job_keys WHERE run_id = {run:String} AND kind = '${BEGUN}'`;

export const keysLost = (): ServiceError =>
  new ServiceError("keys_lost", "the keys of this run were removed while it was paused", { retryable: true });

export type Alive = () => Promise<ReadonlySet<string>>;

/** A run is a partition of `job_keys`: dropping it empties all active parts at once. */
export type JobKeys = {
  begin(run: string, signal?: AbortSignal): Promise<void>;
  /** No key was removed since `begin`. @throws ServiceError `keys_lost` (retryable) */
  assertKept(run: string): Promise<void>;
  forget(run: string): Promise<void>;
  runs(prefix: string): Promise<readonly string[]>;
  /** Runs `<prefix><holder>/…` whose holder is not alive, or is `own` and has ended them all. */
  dead(prefix: string, own: string | null, alive: Alive): Promise<readonly string[]>;
  /** A run that was only paused fails in `assertKept`. */
  forgetDead(prefix: string, own: string | null, alive: Alive): Promise<void>;
};

/** The run's keys are removed once `holder` is not alive. */
export const heldRun = (prefix: string, holder: string, id: string): string => `${prefix}${holder}/${id}`;

/** False in a deletion that goes on after its keys were removed. */
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
    // After the runs: an older answer may lack a holder that has begun one meanwhile.
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
        { signal },
      ),
    assertKept: async (run) => {
      const [row] = await session.rows<{ n: number }>(
        "job_keys.kept",
        `SELECT toUInt32(count()) AS n FROM ${OF_BEGUN}`,
        { parameters: { run } },
      );
      if (row?.n === BEGUN_ROWS) return;
      throw keysLost();
    },
    runs,
    dead,
    forgetDead: async (prefix, own, alive) => {
      for (const run of await dead(prefix, own, alive)) await forget(run);
    },
  };
};
