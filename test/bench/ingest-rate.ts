import { setTimeout as sleep } from "node:timers/promises";

/** A running ingest or peer; `rows` counts the rows written so far. */
export type Running = { stop(): Promise<void>; rows(): Promise<number> };

/** Events a second, from the first written rows to the last. */
export const ingestRate = async (total: number, start: () => Promise<Running>): Promise<number> => {
  const { stop, rows } = await start();
  try {
    let first = 0;
    let firstAt = 0;
    const deadline = performance.now() + 300_000;
    for (;;) {
      const now = await rows();
      const at = performance.now();
      if (first === 0 && now > 0) {
        first = now;
        firstAt = at;
      }
      if (now >= total) {
        if (first >= total) throw new Error("all rows came at once: more events are needed to tell a rate");
        return ((total - first) / (at - firstAt)) * 1000;
      }
      if (at > deadline) throw new Error(`only ${now} of ${total} rows after five minutes`);
      await sleep(100);
    }
  } finally {
    await stop();
  }
};
