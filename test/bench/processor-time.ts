import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A tick of the kernel's accounts, which Linux fixes at 100 a second. */
const TICK_MS = 10;
const USER = 11;
const SYSTEM = 12;
const ENDED_USER = 13;
const ENDED_SYSTEM = 14;

const read = (pid: number | "self", fields: readonly number[]): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program, in brackets, may hold spaces.
  const values = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.reduce((sum, field) => sum + Number(values[field]) * TICK_MS, 0);
};

/** Milliseconds of processor time of these processes so far, all threads, in steps of 10. */
export const processorMs = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + read(pid, [USER, SYSTEM]), 0);

/** The same of all children of this process that have ended. */
export const endedChildrenMs = (): number => read("self", [ENDED_USER, ENDED_SYSTEM]);

const IDLE_MS = 4_000;

/** Processes, and the processor time that they take in a ms of the clock while nothing is asked of them. */
export type Processes = { readonly pids: readonly number[]; readonly idle: number };

/** Watches idle processes for some seconds. */
export const watchIdle = async (pids: readonly number[]): Promise<Processes> => {
  const started = performance.now();
  const before = processorMs(pids);
  await sleep(IDLE_MS);
  return { pids, idle: (processorMs(pids) - before) / (performance.now() - started) };
};
