import { createLogger } from "@conversation-export/runtime";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createInFlight } from "./in-flight.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

const setUp = async (noteInFlight: () => Promise<void> = () => Promise.resolve()) => {
  const noted: [writer: string, stamp: number | null][] = [];
  const warnings: string[] = [];
  const inFlight = createInFlight({
    coordination: {
      noteInFlight: (writer, stamp) => {
        noted.push([writer, stamp]);
        return noteInFlight();
      },
    },
    writer: "w",
    log: createLogger({
      service: "test",
      level: "warn",
      destination: { write: (line) => warnings.push((JSON.parse(line) as { msg: string }).msg) },
    }),
    now: Date.now,
  });
  await inFlight.start();
  onTestFinished(() => inFlight.stop());
  const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
  const begin = (stamp: number, isSlow = false): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    void inFlight.during(stamp, isSlow, () => promise);
    return resolve;
  };
  return { noted, warnings, begin, pass };
};

it("says nothing of writes that end within a second", async () => {
  const { noted, begin, pass } = await setUp();
  for (let at = 0; at < 5; at += 1) {
    const end = begin(at);
    await pass(1_000);
    end();
  }
  expect(noted).toEqual([]);
});

it("reports the oldest stamp of those that take longer, once, and when readers need not wait any more", async () => {
  const { noted, begin, pass } = await setUp();
  const younger = begin(200);
  const older = begin(100);
  await pass(1_500);
  expect(noted).toEqual([["w", 100]]);
  const first = begin(50);
  await pass(900);
  expect(noted).toEqual([["w", 100]]);
  older();
  first();
  await pass(500);
  expect(noted.at(-1)).toEqual(["w", 200]);
  younger();
  await pass(5_000);
  expect(noted).toEqual([
    ["w", 100],
    ["w", 200],
    ["w", null],
  ]);
});

it("lets one that hangs hide no other", async () => {
  const { noted, begin, pass } = await setUp();
  begin(100);
  await pass(31_000);
  begin(30_000_000);
  await pass(2_000);
  expect(noted).toEqual([
    ["w", 100],
    ["w", null],
    ["w", 30_000_000],
  ]);
});

it("announces at once one that was refused before", async () => {
  const { noted, begin } = await setUp();
  begin(7, true);
  expect(noted).toEqual([["w", 7]]);
});

it("goes on, and tries again, when ClickHouse refuses the entry", async () => {
  const { noted, warnings, begin, pass } = await setUp(() => Promise.reject(new Error("away")));
  const end = begin(1, true);
  await pass(2_000);
  expect(noted.length).toBeGreaterThan(1);
  expect(warnings).toHaveLength(noted.length);
  end();
});
