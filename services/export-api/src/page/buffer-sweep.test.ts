import { describe, expect, it, vi } from "vitest";
import { createBufferSweep, threadTime, youngCollector } from "./buffer-sweep.ts";

const MIB = 1024 * 1024;

describe("the sweep of buffers", () => {
  it("collects once for every 4 MiB that have passed, over all answers", () => {
    const collect = vi.fn();
    const sweep = createBufferSweep({ collect, now: () => 0 });
    for (let chunk = 0; chunk < 63; chunk += 1) sweep(MIB / 16);
    expect(collect).toHaveBeenCalledTimes(0);
    sweep(MIB / 16);
    expect(collect).toHaveBeenCalledTimes(1);
    for (let chunk = 0; chunk < 8; chunk += 1) sweep(MIB);
    expect(collect).toHaveBeenCalledTimes(3);
  });

  it("collects more and more rarely while it takes long, and as often as before when it does not", () => {
    let time = 0;
    let takes = 3;
    const collect = vi.fn(() => {
      time += takes;
    });
    const sweep = createBufferSweep({ collect, now: () => time });
    const collections = (mebibytes: number): number => {
      collect.mockClear();
      for (let chunk = 0; chunk < mebibytes; chunk += 1) sweep(MIB);
      return collect.mock.calls.length;
    };
    // After 4, 8, 16, 32, and then 64 MiB each.
    expect(collections(60 + 64 * 4)).toBe(8);
    takes = 1;
    expect(collections(64 + 32 + 16 + 8 + 4 * 10)).toBe(14);
  });

  it("does not count time in which the thread does not run", () => {
    const before = threadTime();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    expect(threadTime() - before).toBeLessThan(50);
    const end = performance.now() + 1_000;
    while (performance.now() < end && threadTime() - before < 60);
    expect(threadTime() - before).toBeGreaterThan(1);
  });

  it("frees buffers that nobody holds any longer, and leaves no collector to others", () => {
    const collect = youngCollector();
    const before = process.memoryUsage().arrayBuffers;
    for (let chunk = 0; chunk < 128; chunk += 1) Buffer.allocUnsafeSlow(MIB / 16);
    collect();
    // Node counts what is swept beside the program only with the next collection.
    collect();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * MIB);
    expect(globalThis.gc).toBeUndefined();
  });
});
