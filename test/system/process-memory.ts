import { readFileSync } from "node:fs";

export const peakMegabytes = (pid: number): number => {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1] ?? Number.NaN) / 1024;
};
