import { createLoop, type Logger, type Part } from "@conversation-export/runtime";
import type { AssembledJob } from "./shared.ts";

const EVERY_MS = 300_000;

/** Dead, cancelled and failed jobs end without a last step. */
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
    // Not awaited: ClickHouse may hang.
    stop: async () => void loop.stop(),
  };
};
