import type { Micros } from "@conversation-export/domain";
import { createLoop, type Logger } from "@conversation-export/runtime";
import { type Coordination, PATIENCE } from "./coordination.ts";

/** A write under way. */
export type Flight = {
  /** Asks readers at once to wait for it; a failure is logged. */
  tell(): Promise<void>;
  end(): void;
};

/** The stamps with which this process is writing. */
export type InFlight = {
  begin(stamp: Micros): Flight;
  /** Runs a write for which readers are asked to wait from its begin. */
  during<T>(stamp: Micros, write: () => Promise<T>): Promise<T>;
  start(): Promise<void>;
  stop(): Promise<void>;
};

const LOOK_EVERY_MS = 500;
/** Most writes end before, and readers are never so near to the present. */
const SLOW_MS = 1_000;

/**
 * Asks in ClickHouse that readers of changes wait for writes that take long; else they would be refused, and stamped
 * anew, again and again.
 * @param deps.writer names this process
 * @param deps.now a clock that never goes back, ms
 */
export const createInFlight = (deps: {
  readonly coordination: Pick<Coordination, "noteInFlight">;
  readonly writer: string;
  readonly log: Logger;
  readonly now: () => number;
}): InFlight => {
  const { coordination, writer, log, now } = deps;
  const writes = new Set<{ readonly stamp: Micros; readonly begunAt: number; isSlow: boolean }>();
  let told: Micros | null = null;

  /** The earliest stamp for which readers are to wait; null: they need not. */
  const wanted = (): Micros | null => {
    const waited = [...writes].filter(
      ({ begunAt, isSlow }) => (isSlow || now() - begunAt > SLOW_MS) && now() - begunAt < PATIENCE / 1_000,
    );
    return waited.length === 0 ? null : Math.min(...waited.map(({ stamp }) => stamp));
  };

  const tell = async (): Promise<void> => {
    const stamp = wanted();
    if (stamp === told) return;
    try {
      await coordination.noteInFlight(writer, stamp);
      told = stamp;
    } catch (error) {
      log.warn({ err: error }, "ClickHouse takes no note of a slow batch");
    }
  };

  const begin = (stamp: Micros): Flight => {
    const write = { stamp, begunAt: now(), isSlow: false };
    writes.add(write);
    return {
      tell: () => {
        write.isSlow = true;
        return tell();
      },
      end: () => void writes.delete(write),
    };
  };

  const loop = createLoop({ turn: tell, pauseMs: LOOK_EVERY_MS });
  return {
    begin,
    during: async (stamp, write) => {
      const flight = begin(stamp);
      try {
        await flight.tell();
        return await write();
      } finally {
        flight.end();
      }
    },
    start: loop.start,
    stop: loop.stop,
  };
};
