import { createLogger, createMetrics } from "@conversation-export/runtime";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createMovedDatesMonitor } from "./moved-dates-monitor.ts";

const BEGUN = Date.parse("2026-10-04T12:00:00Z");
const INTERVAL_MS = 30_000;

beforeEach(() => {
  vi.useFakeTimers({ now: BEGUN });
});
afterEach(() => {
  vi.useRealTimers();
});

it("notes dates up to the stable instant, and goes on after an error", async () => {
  const known: number[] = [];
  const warnings: string[] = [];
  let until = BEGUN * 1_000 - 3_000_000;
  let failing = true;
  let taken = false;
  const metrics = createMetrics({ service: "test" });
  const watch = createMovedDatesMonitor({
    dates: {
      note: (instant) => {
        if (failing) return Promise.reject(new Error("away"));
        known.push(instant);
        return Promise.resolve();
      },
      known: () => Promise.resolve(known.at(-1) ?? 0),
    },
    exclusive: { unlessTaken: (_, signal, work) => (taken ? Promise.resolve(undefined) : work(signal)) },
    stable: { load: () => Promise.resolve({ until, watermarks: {} }) },
    intervalMs: INTERVAL_MS,
    metrics,
    log: createLogger({
      service: "test",
      level: "warn",
      destination: { write: (line) => warnings.push((JSON.parse(line) as { msg: string }).msg) },
    }),
    now: Date.now,
  });
  onTestFinished(() => watch.stop());
  const age = async (): Promise<number> =>
    Number(/^conversation_export_moved_records_known_age_seconds\S* (\S+)$/m.exec(await metrics.text())?.[1]);

  await watch.start();
  await vi.advanceTimersByTimeAsync(INTERVAL_MS - 1);
  expect(known).toEqual([]);
  expect(warnings).toEqual(["recording former dates failed"]);
  expect(await age()).toBeCloseTo(INTERVAL_MS / 1_000, 0);

  failing = false;
  await vi.advanceTimersByTimeAsync(1);
  expect(known).toEqual([until]);
  expect(await age()).toBeCloseTo(INTERVAL_MS / 1_000 + 3, 0);

  until += 30_000_000;
  await vi.advanceTimersByTimeAsync(INTERVAL_MS);
  expect(known).toHaveLength(2);
  expect(known[1]).toBe(until);

  taken = true;
  known.push(until + 30_000_000);
  await vi.advanceTimersByTimeAsync(INTERVAL_MS);
  expect(known).toHaveLength(3);
  expect(await age()).toBeCloseTo(INTERVAL_MS / 1_000 + 3 - 30 + 30, 0);
});
