import { runJob } from "@conversation-export/queue";
import { createSupersededEntries, createWindowStore } from "@conversation-export/warehouse";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createCompaction } from "./compaction.ts";

export const createCompactJob = ({ config, session, exclusive, runHolders }: Shared): AssembledJob => {
  const windowSeconds = config.uploadWindow.seconds;
  const entries = createSupersededEntries({ session, holder: runHolders.own });
  const compaction = createCompaction({
    windows: createWindowStore({ session, windowSeconds }),
    entries,
    alive: runHolders.alive,
    exclusive,
    windowSeconds,
    now: () => Date.now() * 1000,
  });
  return {
    job: runJob(compaction, { globalConcurrency: 1 }),
    sweep: () => entries.sweep(runHolders.alive),
  };
};
