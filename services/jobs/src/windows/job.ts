import { runJob } from "@conversation-export/queue";
import { createWindowStore } from "@conversation-export/warehouse";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createWindows, registerWindowMetrics } from "./windows.ts";

export const createWindowsJob = ({ config, session, stable, exclusive, metrics }: Shared): AssembledJob => {
  const { seconds: windowSeconds, graceSeconds } = config.uploadWindow;
  const store = createWindowStore({ session, windowSeconds });
  registerWindowMetrics(metrics, store);
  const now = (): number => Date.now() * 1000;
  const windows = createWindows({ store, stable, exclusive, windowSeconds, graceSeconds, lookback: 3, now });
  return { job: runJob(windows, { globalConcurrency: 1 }) };
};
