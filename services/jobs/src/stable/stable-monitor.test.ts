import { createLogger, createMetrics } from "@conversation-export/runtime";
import type { Stable, Watermarks } from "@conversation-export/warehouse";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createStableMonitor } from "./stable-monitor.ts";

const SECOND = 1_000_000;
const INTERVAL_MS = 2_000;
const BEGUN = Date.parse("2026-10-04T12:00:00Z");

beforeEach(() => {
  vi.useFakeTimers({ now: BEGUN });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Each turn is one interval; instants are µs. */
const setUp = (stored: Stable = { until: 0, watermarks: {} }) => {
  const world = {
    stored,
    clock: 0,
    announced: 0,
    inFlight: null as number | null,
    running: null as number | null,
    /** null: as `clock`. */
    at: null as number | null,
    watermarks: {} as Watermarks,
    failing: null as string | null,
    asked: [] as string[],
    announcements: [] as number[],
    saved: [] as Stable[],
    warnings: [] as string[],
  };
  const answer = <T>(what: string, value: () => T): Promise<T> => {
    world.asked.push(what);
    return world.failing === what ? Promise.reject(new Error("away")) : Promise.resolve(value());
  };
  const metrics = createMetrics({ service: "test" });
  const watch = createStableMonitor({
    coordination: {
      look: () =>
        answer("look", () => ({
          clock: world.clock,
          announced: world.announced,
          generation: 0,
          inFlight: world.inFlight,
        })),
      announce: (until) =>
        answer("announce", () => {
          world.announcements.push(until);
          world.announced = Math.max(world.announced, until);
        }),
      running: () => answer("running", () => [{ id: "i", stamp: world.running }]),
    },
    store: {
      load: () => answer("load", () => world.stored),
      watermarks: () =>
        answer("watermarks", () => ({ at: world.at ?? world.clock, watermarks: world.watermarks })),
      save: (stable) => answer("save", () => void world.saved.push(stable)),
    },
    intervalMs: INTERVAL_MS,
    metrics,
    log: createLogger({
      service: "test",
      level: "warn",
      destination: { write: (line) => world.warnings.push((JSON.parse(line) as { msg: string }).msg) },
    }),
    now: Date.now,
  });
  onTestFinished(() => watch.stop());
  const turn = async (change: Partial<typeof world> = {}): Promise<void> => {
    Object.assign(world, change);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS);
  };
  const age = async (): Promise<number> =>
    Number(/^conversation_export_changes_stable_age_seconds\S* (\S+)$/m.exec(await metrics.text())?.[1]);
  return { world, watch, turn, age, untils: () => world.saved.map(({ until }) => until / SECOND) };
};

it("announces the present less two seconds, and publishes it once no older INSERT runs", async () => {
  const { world, watch, turn, untils } = setUp();
  world.clock = 100 * SECOND;
  await watch.start();
  await turn({ clock: 102 * SECOND, running: 99 * SECOND });
  await turn({ clock: 104 * SECOND });
  await turn({ clock: 106 * SECOND, running: 105 * SECOND });
  await turn({ clock: 108 * SECOND, running: null });
  expect(world.announcements).toEqual([98, 100, 102, 104, 106].map((seconds) => seconds * SECOND));
  expect(untils()).toEqual([98, 99, 104, 106]);
});

it("asks which INSERTs run only behind the announcement, and publishes behind both", async () => {
  const { world, watch, turn } = setUp();
  world.clock = 100 * SECOND;
  await watch.start();
  await turn({ clock: 102 * SECOND });
  const steps = world.asked.filter((what) => !["load", "watermarks"].includes(what));
  const once = ["look", "announce", "running", "save"];
  expect(steps).toEqual([...once, ...once]);
});

it("announces nothing new while ClickHouse's clock is behind, and publishes what other processes have announced", async () => {
  const { world, watch, turn, untils } = setUp();
  Object.assign(world, { clock: 100 * SECOND, announced: 160 * SECOND, running: 150 * SECOND });
  await watch.start();
  await turn();
  await turn({ clock: 162 * SECOND, running: null });
  // Another process may have failed before every replica had it.
  expect(new Set(world.announcements)).toEqual(new Set([160 * SECOND]));
  expect(untils()).toEqual([150, 160]);
  await turn({ clock: 163 * SECOND });
  expect(world.announcements.at(-1)).toBe(161 * SECOND);
});

it("announces nothing more after the clock was set back, and publishes nothing earlier", async () => {
  const { world, watch, turn, untils } = setUp();
  world.clock = 500 * SECOND;
  await watch.start();
  await turn({ clock: 140 * SECOND });
  await turn({ clock: 499 * SECOND, running: 400 * SECOND });
  await turn({ clock: 501 * SECOND, running: 499 * SECOND });
  expect(world.announcements).toEqual([498 * SECOND, 499 * SECOND]);
  expect(untils()).toEqual([498, 499]);
});

it("never publishes less than what is published", async () => {
  const { world, watch, turn, untils } = setUp({ until: 500 * SECOND, watermarks: {} });
  world.clock = 502 * SECOND;
  await watch.start();
  await turn({ clock: 503 * SECOND, running: 450 * SECOND });
  expect(untils()).toEqual([]);
  await turn({ running: null });
  expect(untils()).toEqual([501]);
});

it("waits for a slow batch whose stamp is noted", async () => {
  const { world, watch, turn } = setUp();
  Object.assign(world, { clock: 100 * SECOND, inFlight: 95 * SECOND });
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  // A stamp below what is announced is rejected whatever happens.
  for (const seconds of [110, 125]) await turn({ clock: seconds * SECOND });
  expect(world.announced).toBe(95 * SECOND - 1);
  await turn({ clock: 125 * SECOND + 1, inFlight: null });
  expect(world.announced).toBe(123 * SECOND + 1);
  await turn({ clock: 130 * SECOND, inFlight: 120 * SECOND });
  expect(world.announced).toBe(123 * SECOND + 1);
  await turn({ clock: 132 * SECOND, inFlight: null });
  expect(world.announced).toBe(130 * SECOND);
});

it("does not wait for a batch that is younger than what it announces", async () => {
  const { world, watch } = setUp();
  Object.assign(world, { clock: 100 * SECOND, inFlight: 99 * SECOND });
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(world.announcements).toEqual([98 * SECOND]);
});

it("publishes watermarks when a former turn has settled what was readable with them, clocks allowed for", async () => {
  const { world, watch, turn } = setUp();
  const first = { messages: 90 * SECOND };
  Object.assign(world, { clock: 100 * SECOND, watermarks: first });
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  await turn({ clock: 102 * SECOND });
  const second = { messages: 95 * SECOND };
  await turn({ watermarks: second, clock: 107 * SECOND - 1 });
  for (const seconds of [107, 108, 109, 116, 117]) await turn({ clock: seconds * SECOND });
  expect(world.saved.map(({ watermarks }) => watermarks)).toEqual([{}, {}, {}, {}, first, {}, {}, second]);
});

it.each<[string, { readonly announced?: number; readonly before?: number }]>([
  ["what is announced is later", { announced: 160 * SECOND }],
  ["it had shown a later instant, up to which rows may be stamped", { before: 160 * SECOND }],
])("publishes watermarks no earlier when ClickHouse's clock was set back: %s", async (_, {
  announced,
  before,
}) => {
  const { world, watch, turn } = setUp();
  world.clock = before ?? 0;
  if (before !== undefined) Object.assign(world, { inFlight: 131 * SECOND, failing: "watermarks" });
  else Object.assign(world, { failing: "look" });
  await watch.start();
  await turn();
  const watermarks = { messages: 90 * SECOND };
  await turn({ clock: 135 * SECOND, announced: announced ?? 131 * SECOND, failing: null, watermarks });
  await turn({ clock: 166 * SECOND, inFlight: null });
  await turn({ clock: 167 * SECOND - 1 });
  await turn({ clock: 167 * SECOND });
  expect(world.saved.every((stable) => Object.keys(stable.watermarks).length === 0)).toBe(true);
  await turn({ clock: 168 * SECOND });
  expect(world.saved.at(-1)?.watermarks).toEqual(watermarks);
});

it.each([
  "load",
  "look",
  "watermarks",
  "announce",
  "running",
  "save",
])("leaves what is stable as it is while it cannot ask for %s, and says so once", async (failing) => {
  const { world, watch, turn, untils, age } = setUp({ until: 10, watermarks: {} });
  Object.assign(world, { failing, clock: BEGUN * 1_000 + 2 * SECOND });
  await watch.start();
  await turn();
  await turn();
  expect(untils()).toEqual([]);
  expect(world.warnings).toEqual(["advancing the change feed failed"]);
  await turn({ failing: null });
  expect(untils()).toEqual([BEGUN / 1_000]);
  expect(await age()).toBe((Date.now() - BEGUN) / 1_000);
});

it("reports the age of what is stable, and its own while nothing is", async () => {
  const { watch, turn, age } = setUp();
  await watch.start();
  await turn();
  await turn();
  expect(await age()).toBe(4);
  await turn({ clock: (BEGUN - 60_000) * 1_000 + 2 * SECOND });
  expect(await age()).toBe(66);
});

it("announces nothing by a clock that is far ahead of its own: all others would be refused", async () => {
  const { world, watch, turn } = setUp();
  world.clock = (BEGUN + 70_000) * 1_000;
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  expect([world.announcements, world.saved]).toEqual([[], []]);
  expect(world.warnings).toHaveLength(1);
  await turn({ clock: (BEGUN + 30_000) * 1_000 });
  expect(world.announcements).toEqual([(BEGUN + 28_000) * 1_000]);
});

it("announces what is stable again when the announcements were lost", async () => {
  const { world, watch } = setUp({ until: 500 * SECOND, watermarks: {} });
  Object.assign(world, { clock: 400 * SECOND, announced: 0 });
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(world.announced).toBe(500 * SECOND);
});
