import { createLoop, type Logger, type Part } from "@conversation-export/runtime";
import type { AssembledJob } from "./shared.ts";

const EVERY_MS = 300_000;

/** Jobs that died, were cancelled or failed for good end without a last step. */
export const createSweeping = (deps: {
  readonly jobs: readonly Pick<AssembledJob, "job" | "sweep">[];
  readonly log: Logger;
}): Part => {
  const turn = async (): Promise<void> => {
    for (const { job, sweep } of deps.jobs)
      await sweep?.().catch((error: unknown) => {
        deps.log.warn({ err: error, queue: job.name }, "cleanup after jobs failed");
      });
  };
  const loop = createLoop({ turn, pauseMs: EVERY_MS });
  return {
    name: "sweep",
    start: loop.start,
    // Not awaited: while ClickHouse hangs, a sweep would delay the end of the process.
    stop: async () => void loop.stop(),
  };
};
