import { setTimeout as sleep } from "node:timers/promises";
import { runSql } from "./warehouse-http.ts";

const EVERY_MS = 50;
const PEAK = `SELECT max(m) FROM (SELECT toInt64(peak_memory_usage) AS m FROM system.processes WHERE query NOT LIKE '%peak_memory_usage%'
  UNION ALL SELECT toInt64(memory_usage) FROM system.merges)`;

export const createPeakMemory = (url: string): { stop(): Promise<number> } => {
  let peak = 0;
  let stopped = false;
  const looking = (async () => {
    while (!stopped) {
      peak = Math.max(peak, Number((await runSql(url, PEAK)).text));
      await sleep(EVERY_MS);
    }
  })();
  return {
    stop: async () => {
      stopped = true;
      await looking;
      return peak;
    },
  };
};
