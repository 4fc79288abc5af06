import type { ServiceProcess } from "./service-process.ts";
import { until } from "./until.ts";

/** A process that is started again whenever it ends, as an orchestrator would. */
export type KeptProcess = {
  /** The process that runs now or ran last. */
  current(): ServiceProcess;
  /** How often it was started. */
  starts(): number;
  /** Kills it by SIGKILL and resolves when its successor is ready. */
  crash(): Promise<void>;
  /** Resolves when the process, or its successor, is ready. */
  ready(): Promise<void>;
  /** Ends it for good. */
  stop(): Promise<void>;
};

const DEADLINE_MS = 120_000;

export const keepRunning = async (start: () => Promise<ServiceProcess>): Promise<KeptProcess> => {
  let current = await start();
  let starts = 1;
  let stopped = false;

  const watch = async (): Promise<void> => {
    for (;;) {
      await current.exited;
      if (stopped) return;
      // One that dies while it starts is started again.
      const next = await start().catch(() => null);
      if (next === null) continue;
      current = next;
      starts += 1;
      if (stopped) await current.kill("SIGKILL");
    }
  };
  const watching = watch();

  const ready = (): Promise<void> =>
    until("the process is ready", DEADLINE_MS, async () => {
      const answer = await fetch(`${current.metricsUrl}/ready`).catch(() => null);
      return answer?.ok === true;
    });

  return {
    current: () => current,
    starts: () => starts,
    crash: async () => {
      const before = starts;
      await current.kill("SIGKILL");
      await until("the process is started again", DEADLINE_MS, () => starts > before);
      await ready();
    },
    ready,
    stop: async () => {
      stopped = true;
      await current.kill("SIGTERM");
      await watching;
    },
  };
};
