import { createLogger, createMetrics } from "@conversation-export/runtime";
import type { Settled, Watermarks } from "@conversation-export/warehouse";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createSettledWatch } from "./settled-watch.ts";

const SECOND = 1_000_000;
const INTERVAL_MS = 2_000;
const BEGUN = Date.parse("2026-10-04T12:00:00Z");

beforeEach(() => {
  vi.useFakeTimers({ now: BEGUN });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A watch between leases and a store that answer as they are told; each turn is one interval. */
const setUp = (stored: Settled = { until: 0, watermarks: {} }) => {
  const world = {
    stored,
    byLeases: null as number | null,
    oldestInsert: null as number | null,
    /** ClickHouse's clock, µs. */
    at: 0,
    /** What this process would upload with, µs. */
    uploadTime: 0,
    watermarks: {} as Watermarks,
    failing: null as string | null,
    asked: [] as string[],
    known: [] as number[],
    saved: [] as Settled[],
    warnings: [] as string[],
  };
  const answer = <T>(what: string, value: () => T): Promise<T> => {
    world.asked.push(what);
    return world.failing === what ? Promise.reject(new Error("away")) : Promise.resolve(value());
  };
  const metrics = createMetrics({ service: "test" });
  const watch = createSettledWatch({
    leases: {
      settledUntil: (known) => {
        world.known.push(known);
        return answer("leases", () => world.byLeases);
      },
    },
    store: {
      load: () => answer("load", () => world.stored),
      watermarks: () => answer("watermarks", () => ({ at: world.at, watermarks: world.watermarks })),
      oldestUpload: () => answer("inserts", () => world.oldestInsert),
      save: (settled) => answer("save", () => void world.saved.push(settled)),
    },
    uploadTime: () => world.uploadTime,
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
    Number(/^changes_settled_age_seconds\S* (\S+)$/m.exec(await metrics.text())?.[1]);
  return { world, watch, turn, age, untils: () => world.saved.map(({ until }) => until) };
};

it("stores nothing while leases may be missing, or there is none", async () => {
  const { world, watch, turn } = setUp();
  await watch.start();
  await turn();
  await turn();
  expect(world.known.length).toBeGreaterThan(1);
  expect(world.saved).toEqual([]);
});

it("stores the earliest instant of the leases and of the INSERTs that run after they were asked", async () => {
  const { world, watch, turn, untils } = setUp();
  await watch.start();
  await turn({ byLeases: 100 * SECOND });
  await turn({ byLeases: 200 * SECOND, oldestInsert: 150 * SECOND });
  await turn({ oldestInsert: 300 * SECOND });
  await turn({ byLeases: 210 * SECOND, oldestInsert: null });
  expect(untils()).toEqual([100, 150, 200, 210].map((seconds) => seconds * SECOND));
  const bounds = world.asked.filter((what) => what === "leases" || what === "inserts");
  expect(bounds.slice(-4)).toEqual(["leases", "inserts", "leases", "inserts"]);
});

it("never goes back, nor behind what another process has stored, and tells the leases what it knows", async () => {
  const { world, watch, turn, untils } = setUp({ until: 500, watermarks: {} });
  await watch.start();
  for (const byLeases of [499, 500, 501, 400, 502]) await turn({ byLeases });
  await turn({ byLeases: 600, oldestInsert: 450 });
  await turn({ oldestInsert: 502 });
  expect(untils()).toEqual([501, 502]);
  expect(world.known.slice(0, 2)).toEqual([500, 500]);
  expect(world.known.at(-1)).toBe(502);
});

it("publishes watermarks when a former turn has settled what was readable with them, clocks allowed for", async () => {
  const { world, watch, turn } = setUp();
  const first = { messages: 90 * SECOND };
  Object.assign(world, { at: 100 * SECOND, watermarks: first });
  await watch.start();
  await turn();
  // Whatever is known later belongs to a later instant.
  const second = { messages: 95 * SECOND };
  await turn({ at: 106 * SECOND, watermarks: second, byLeases: 105 * SECOND - 1 });
  await turn({ byLeases: 105 * SECOND });
  await turn({ byLeases: 106 * SECOND });
  await turn({ byLeases: 111 * SECOND });
  await turn({ byLeases: 112 * SECOND });
  expect(world.saved.map(({ watermarks }) => watermarks)).toEqual([{}, {}, first, {}, second]);
});

it("publishes watermarks no earlier when ClickHouse's clock was set back behind what writers use", async () => {
  const { world, watch, turn } = setUp();
  const watermarks = { messages: 90 * SECOND };
  Object.assign(world, { at: 100 * SECOND, uploadTime: 160 * SECOND, watermarks });
  await watch.start();
  await turn({ byLeases: 106 * SECOND });
  await turn({ byLeases: 165 * SECOND });
  expect(world.saved.every((settled) => Object.keys(settled.watermarks).length === 0)).toBe(true);
  await turn({ byLeases: 166 * SECOND });
  expect(world.saved.at(-1)?.watermarks).toEqual(watermarks);
});

it.each([
  "load",
  "watermarks",
  "leases",
  "inserts",
  "save",
])("leaves what is settled as it is while it cannot ask for %s, and says so once", async (failing) => {
  const { world, watch, turn, untils, age } = setUp({ until: 10, watermarks: {} });
  Object.assign(world, { failing, byLeases: BEGUN * 1_000 });
  await watch.start();
  await turn();
  await turn();
  expect(untils()).toEqual([]);
  expect(world.warnings).toEqual(["the settled instant of changes stays as it is"]);
  await turn({ failing: null });
  expect(untils()).toEqual([BEGUN * 1_000]);
  expect(await age()).toBe((Date.now() - BEGUN) / 1_000);
});

it("tells the age of what is settled, and its own while nothing is", async () => {
  const { watch, turn, age } = setUp();
  await watch.start();
  await turn();
  await turn();
  expect(await age()).toBe(4);
  await turn({ byLeases: (BEGUN - 60_000) * 1_000 });
  expect(await age()).toBe(66);
});
