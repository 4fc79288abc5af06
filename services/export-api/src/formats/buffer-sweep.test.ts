import { describe, expect, it, vi } from "vitest";
import { createBufferSweep, youngCollector } from "./buffer-sweep.ts";

const MIB = 1024 * 1024;

describe("the sweep of buffers", () => {
  it("collects once for every MiB that has passed, over all answers", () => {
    const collect = vi.fn();
    const sweep = createBufferSweep({ collect });
    for (let chunk = 0; chunk < 15; chunk += 1) sweep(MIB / 16);
    expect(collect).toHaveBeenCalledTimes(0);
    sweep(MIB / 16);
    expect(collect).toHaveBeenCalledTimes(1);
    for (let chunk = 0; chunk < 8; chunk += 1) sweep(MIB / 4);
    expect(collect).toHaveBeenCalledTimes(3);
  });

  it("frees buffers that nobody holds any longer, and leaves no collector to others", () => {
    const collect = youngCollector();
    const before = process.memoryUsage().arrayBuffers;
    for (let chunk = 0; chunk < 128; chunk += 1) Buffer.allocUnsafeSlow(MIB / 16);
    collect();
    // Node counts them only with the next collection.
    collect();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * MIB);
    expect(globalThis.gc).toBeUndefined();
  });
});
