import type { AuditStore, ErasureStore } from "@conversation-export/warehouse";
import { ACTOR } from "../process/noted.ts";

/** A store that notes what it erases for nobody's request. */
export type FoundNotedStore = Omit<ErasureStore, "begin"> & {
  /** @param erases false: the run only counts, and is not noted */
  begin(runId: string, erases: boolean): ReturnType<ErasureStore["begin"]>;
};

/**
 * The store with notes in the audit of what a run erases of persons who were erased before, since writers
 * found more of it. What requests ask for has notes of its own.
 */
export const withFoundNoted = (store: ErasureStore, audit: Pick<AuditStore, "note">): FoundNotedStore => {
  const note = (state: "begun" | "done", runId: string): Promise<void> => {
    // Runs begin with the id of their job: an attempt that died ends with the next one.
    const job = runId.slice(0, runId.indexOf("/"));
    return audit.note([
      { runId: job, state, actor: ACTOR, command: "erasure run", arguments: { job }, result: "" },
    ]);
  };
  return {
    ...store,
    begin: async (runId, erases) => {
      const begun = await store.begin(runId);
      if (erases && begun.foundEndUsers + begun.ids > 0) await note("begun", runId);
      return begun;
    },
    settleFound: async (runId, signal) => {
      await store.settleFound(runId, signal);
      await note("done", runId);
    },
  };
};
