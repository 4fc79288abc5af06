import { setTimeout as sleep } from "node:timers/promises";

/** A running ingest or peer; `rows` counts the rows written so far, `spent` any seconds of processors. */
export type Running = {
  stop(): Promise<void>;
  rows(): Promise<number>;
  spent?(): Promise<readonly number[]>;
};

const NOTHING = (): Promise<readonly number[]> => Promise.resolve([]);

/** From the first written rows to the last: events a second, and what each of them has spent, in µs. */
export const ingestCost = async (
  total: number,
  start: () => Promise<Running>,
): Promise<{ rate: number; spent: readonly number[] }> => {
  const { stop, rows, spent = NOTHING } = await start();
  try {
    let first = 0;
    let firstAt = 0;
    let before: readonly number[] = [];
    const deadline = performance.now() + 300_000;
    for (;;) {
      const now = await rows();
      const at = performance.now();
      if (first === 0 && now > 0) {
        first = now;
        firstAt = at;
        before = await spent();
      }
      if (now >= total) {
        if (first >= total) throw new Error("all rows came at once: more events are needed to tell a rate");
        const counted = total - first;
        const after = await spent();
        return {
          rate: (counted / (at - firstAt)) * 1000,
          spent: after.map((seconds, index) => ((seconds - (before[index] ?? 0)) * 1e6) / counted),
        };
      }
      if (at > deadline) throw new Error(`only ${now} of ${total} rows after five minutes`);
      await sleep(100);
    }
  } finally {
    await stop();
  }
};

/** Events a second, from the first written rows to the last. */
export const ingestRate = async (total: number, start: () => Promise<Running>): Promise<number> =>
  (await ingestCost(total, start)).rate;
