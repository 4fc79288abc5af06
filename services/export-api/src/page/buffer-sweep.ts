import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** To be called with the number of bytes that were passed on. */
export type SweepBuffers = (bytes: number) => void;

const LEAST_BYTES = 4 * 1024 * 1024;
const MOST_BYTES = 64 * 1024 * 1024;
/** A collection that takes longer finds buffers that are still waiting for their readers. */
const SLOW_MS = 2;

/**
 * Frees the buffers of bytes that were passed on, all over the process. V8 counts them as old objects and marks the
 * whole heap for every few of them; while few are waiting, collecting the young objects finds them in about a
 * millisecond. While many are, it finds few and everybody waits for it, so it is done more and more rarely.
 *
 * @param deps.collect collects the young objects
 * @param deps.now milliseconds of processor time, see `threadTime`
 */
export const createBufferSweep = (deps: {
  readonly collect: () => void;
  readonly now: () => number;
}): SweepBuffers => {
  const { collect, now } = deps;
  let passed = 0;
  let every = LEAST_BYTES;
  return (bytes) => {
    passed += bytes;
    if (passed < every) return;
    passed = 0;
    const before = now();
    collect();
    every = now() - before > SLOW_MS ? Math.min(2 * every, MOST_BYTES) : Math.max(every / 2, LEAST_BYTES);
  };
};

/** Processor time of this thread in ms. Other than by a clock, what waits for a processor does not look slow. */
export const threadTime = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** A function that collects the young objects of the process; nothing where V8 offers no collector. */
export const youngCollector = (): (() => void) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("globalThis.gc") as NodeJS.GCFunction | undefined;
  setFlagsFromString("--no-expose-gc");
  return () => {
    collect?.({ type: "minor" });
  };
};
