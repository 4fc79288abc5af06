import { readdirSync, readFileSync } from "node:fs";
import { parseProcStat } from "@conversation-export/local-stack";
import { until } from "./until.ts";

/** Whether no thread of a process runs. */
const allStopped = (pid: number): boolean => {
  try {
    return readdirSync(`/proc/${pid}/task`).every(
      (thread) => parseProcStat(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"))?.state === "T",
    );
  } catch {
    // A thread ended meanwhile.
    return false;
  }
};

/** Stops a process by SIGSTOP, which each of its threads heeds when it is scheduled: resolves when all have. */
export const stopProcess = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGSTOP");
  await until("all threads have stopped", 5_000, () => allStopped(pid), 2);
};
