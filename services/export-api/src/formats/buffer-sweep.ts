import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** To be called with the number of bytes that were passed on. */
export type SweepBuffers = (bytes: number) => void;

const EVERY_BYTES = 4 * 1024 * 1024;

/**
 * Frees buffers that were sent: V8 counts them as old and marks the whole heap; collecting young objects in
 * time takes a millisecond.
 * @param deps.collect collects the young objects
 */
export const createBufferSweep = (deps: { readonly collect: () => void }): SweepBuffers => {
  let passed = 0;
  return (bytes) => {
    passed += bytes;
    if (passed < EVERY_BYTES) return;
    passed = 0;
    deps.collect();
  };
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
