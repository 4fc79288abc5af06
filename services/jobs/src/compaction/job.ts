import { createRanSince, runJob } from "@conversation-export/queue";
import { createCleanupStore, createPartitionStore, createWindowStore } from "@conversation-export/warehouse";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createCompaction } from "./compaction.ts";

/** By how much the clocks of this process, Redis and ClickHouse may differ. */
const CLOCKS_DIFFER_MS = 60_000;

/** Assembles the job that makes closed upload windows small and fast to read. */
export const createCompactJob = ({ config, session, redis, exclusive }: Shared): AssembledJob => {
  const windowSeconds = config.uploadWindow.seconds;
  const ranSince = createRanSince({ redis });
  const compaction = createCompaction({
    windows: createWindowStore({ session, windowSeconds }),
    cleanup: createCleanupStore({ session }),
    partitions: createPartitionStore({ session }),
    exclusive,
    droppedSince: (instant) => ranSince("retention", instant / 1_000 - CLOCKS_DIFFER_MS),
    windowSeconds,
    quietSeconds: config.quietSeconds,
    now: () => Date.now() * 1000,
  });
  return { job: runJob(compaction, { globalConcurrency: 1 }) };
};
