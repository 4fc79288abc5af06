import type { ServiceProcess } from "./service-process.ts";
import { until } from "./until.ts";

export type KeptProcess = {
  current(): ServiceProcess;
  starts(): number;
  /** Resolves when its successor is ready. */
  crash(): Promise<void>;
  ready(): Promise<void>;
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
