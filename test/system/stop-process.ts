import { isStopped } from "@conversation-export/local-stack";
import { until } from "./until.ts";

/** Threads obey SIGSTOP only when scheduled; resolves when all have. */
export const stopProcess = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGSTOP");
  await until("all threads have stopped", 5_000, () => isStopped(pid), 2);
};
