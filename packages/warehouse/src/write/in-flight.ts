import type { Micros } from "@conversation-export/domain";
import { createLoop, type Logger } from "@conversation-export/runtime";
import { type Coordination, PATIENCE } from "./coordination.ts";

export type InFlight = {
  /** Asks readers to wait once it takes long; `isSlow`: at once. Logs failures of that. */
  during<T>(stamp: Micros, isSlow: boolean, work: () => Promise<T>): Promise<T>;
  start(): Promise<void>;
  stop(): Promise<void>;
};

const LOOK_EVERY_MS = 500;
/** Readers are never so near to the present. */
const SLOW_MS = 1_000;

/** Otherwise slow writes are rejected and stamped anew for ever. `now`: ms, never goes back. */
export const createInFlight = (deps: {
  readonly coordination: Pick<Coordination, "noteInFlight">;
  readonly writer: string;
  readonly log: Logger;
  readonly now: () => number;
}): InFlight => {
  const { coordination, writer, log, now } = deps;
  const writes = new Set<{ readonly stamp: Micros; readonly begunAt: number; readonly isSlow: boolean }>();
  let announced: Micros | null = null;

  const wanted = (): Micros | null => {
    const waited = [...writes].filter(
      ({ begunAt, isSlow }) => (isSlow || now() - begunAt > SLOW_MS) && now() - begunAt < PATIENCE / 1_000,
    );
    return waited.length === 0 ? null : Math.min(...waited.map(({ stamp }) => stamp));
  };

  const announce = async (): Promise<void> => {
    const stamp = wanted();
    if (stamp === announced) return;
    try {
      await coordination.noteInFlight(writer, stamp);
      announced = stamp;
    } catch (error) {
      log.warn({ err: error }, "recording a slow batch failed");
    }
  };

  const { start, stop } = createLoop({ turn: announce, pauseMs: LOOK_EVERY_MS });
  return {
    during: async (stamp, isSlow, work) => {
      const write = { stamp, begunAt: now(), isSlow };
      writes.add(write);
      try {
        if (isSlow) await announce();
        return await work();
      } finally {
        writes.delete(write);
      }
    },
    start,
    stop,
  };
};
