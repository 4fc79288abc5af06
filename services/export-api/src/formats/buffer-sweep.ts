import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export type SweepBuffers = (bytes: number) => void;

const EVERY_BYTES = 1024 * 1024;

/** V8 would count sent buffers as old and mark the whole heap (docs/decisions/0028). */
export const createBufferSweep = (deps: { readonly collect: () => void }): SweepBuffers => {
  let passed = 0;
  return (bytes) => {
    passed += bytes;
    if (passed < EVERY_BYTES) return;
    passed = 0;
    deps.collect();
  };
};

/** Does nothing where V8 offers no collector. */
export const youngCollector = (): (() => void) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("globalThis.gc") as NodeJS.GCFunction | undefined;
  setFlagsFromString("--no-expose-gc");
  return () => {
    collect?.({ type: "minor" });
  };
};
