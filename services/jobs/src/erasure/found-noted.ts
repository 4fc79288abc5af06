import type { AuditStore, ErasureRun, ErasureStore } from "@conversation-export/warehouse";
import { ACTOR } from "../process/noted.ts";

/** Requests have audit entries of their own. */
export const withFoundNoted = (store: ErasureStore, audit: Pick<AuditStore, "note">): ErasureStore => {
  const note = (state: "begun" | "done", run: ErasureRun): Promise<void> => {
    // An attempt that died ends with the job's next one.
    const job = run.id.slice(0, run.id.indexOf("/"));
    return audit.note([
      { runId: job, state, actor: ACTOR, command: "erasure run", arguments: { job }, result: "" },
    ]);
  };
  return {
    ...store,
    begin: async (run) => {
      const begun = await store.begin(run);
      if (run.erases && begun.found > 0) await note("begun", run);
      return begun;
    },
    settleFound: async (run, signal) => {
      await store.settleFound(run, signal);
      await note("done", run);
    },
  };
};
