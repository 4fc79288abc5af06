import type { AuditStore, ErasureStore } from "@conversation-export/warehouse";
import { ACTOR } from "../process/noted.ts";

/**
 * The store with notes in the audit of what a run erases of persons who were erased before, since writers
 * found more of it. What requests ask for has notes of its own.
 */
export const withFoundNoted = (store: ErasureStore, audit: Pick<AuditStore, "note">): ErasureStore => {
  const note = (state: "begun" | "done", runId: string): Promise<void> => {
    // Runs begin with the id of their job: an attempt that died ends with the next one.
    const job = runId.slice(0, runId.lastIndexOf("/"));
    return audit.note([
      { runId: job, state, actor: ACTOR, command: "erasure run", arguments: { job }, result: "" },
    ]);
  };
  return {
    ...store,
    begin: async (runId) => {
      const begun = await store.begin(runId);
      if (begun.foundEndUsers + begun.ids > 0) await note("begun", runId);
      return begun;
    },
    settleFound: async (runId, signal) => {
      await store.settleFound(runId, signal);
      await note("done", runId);
    },
  };
};
