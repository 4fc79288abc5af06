import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Linux fixes it at 100 ticks a second. */
const TICK_MS = 10;
const USER = 11;
const SYSTEM = 12;
const ENDED_USER = 13;
const ENDED_SYSTEM = 14;

const read = (pid: number | "self", fields: readonly number[]): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // A program's name, in brackets, may hold spaces.
  const values = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.reduce((sum, field) => sum + Number(values[field]) * TICK_MS, 0);
};

/** In steps of 10. */
export const processorMs = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + read(pid, [USER, SYSTEM]), 0);

export const endedChildrenMs = (): number => read("self", [ENDED_USER, ENDED_SYSTEM]);

const IDLE_MS = 4_000;

/** `idle`: for each ms of the clock. */
export type Processes = { readonly pids: readonly number[]; readonly idle: number };

export const watchIdle = async (pids: readonly number[]): Promise<Processes> => {
  const started = performance.now();
  const before = processorMs(pids);
  await sleep(IDLE_MS);
  return { pids, idle: (processorMs(pids) - before) / (performance.now() - started) };
};
