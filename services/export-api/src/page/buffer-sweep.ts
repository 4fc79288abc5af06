import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** To be called with the number of bytes that have passed. */
export type SweepBuffers = (bytes: number) => void;

/** Half of what V8 takes between two markings of a small heap, at least. */
const SWEEP_BYTES = 4 * 1024 * 1024;

/**
 * Frees buffers of bytes that have passed, all over the process. V8 counts them as old objects and would mark
 * the whole heap for every few of them; collecting the young objects finds them in less than a millisecond.
 *
 * @param deps.collect collects the young objects
 */
export const createBufferSweep = ({ collect }: { readonly collect: () => void }): SweepBuffers => {
  let passed = 0;
  return (bytes) => {
    passed += bytes;
    if (passed < SWEEP_BYTES) return;
    passed = 0;
    collect();
  };
};

/** A function that collects the young objects of the process. */
export const youngCollector = (): (() => void) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as NodeJS.GCFunction;
  setFlagsFromString("--no-expose-gc");
  return () => collect({ type: "minor" });
};
