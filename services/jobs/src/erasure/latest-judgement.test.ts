import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createLatestJudgement } from "./latest-judgement.ts";

const PATIENCE_MS = 30_000;

const setUp = () => {
  const steps: string[] = [];
  const world = {
    now: 0,
    clock: 100,
    announced: 90,
    /** One after the other; the last one stays. */
    until: [101],
    running: [[]] as string[][],
    onStableRead: (): void => {},
    onRunning: (): void => {},
  };
  const next = <T>(answers: T[]): T => (answers.length > 1 ? answers.shift() : answers[0]) as T;
  const warned: unknown[] = [];
  const judgement = createLatestJudgement({
    coordination: {
      beginGeneration: async () => {
        steps.push("begin");
        return 7;
      },
      announce: async (until) => void steps.push(`announce ${until}`),
      requireGeneration: async (generation) => void steps.push(`require ${generation}`),
      look: async () => {
        steps.push("look");
        return { clock: world.clock, announced: world.announced, generation: 6, inFlight: null };
      },
      running: async () => {
        steps.push("running?");
        world.onRunning();
        return next(world.running).map((id) => ({ id, stamp: null }));
      },
    },
    stable: {
      load: async () => {
        steps.push("stable?");
        world.onStableRead();
        return { until: next(world.until), watermarks: {} };
      },
    },
    patienceMs: PATIENCE_MS,
    now: () => world.now,
    log: createLogger({
      service: "test",
      level: "warn",
      destination: { write: (line) => warned.push((JSON.parse(line) as { awaited: unknown }).awaited) },
    }),
  });
  return { world, steps, warned, judgement };
};
const { signal } = new AbortController();

it("announces a new generation without waiting", async () => {
  const { steps, judgement } = setUp();
  await judgement.announce();
  expect(steps).toEqual(["begin"]);
});

it("requires a new generation once batches that were stamped before it are stable, and then waits for INSERTs", async () => {
  const { world, steps, judgement } = setUp();
  Object.assign(world, { until: [99, 100, 101], running: [["a", "b"], ["b", "later"], ["later"]] });
  expect(await judgement.required(signal)).toBe(100);
  expect(steps).toEqual([
    "begin",
    "look",
    "stable?",
    "stable?",
    "stable?",
    "require 7",
    "running?",
    "running?",
    "running?",
  ]);
});

it("waits for what is announced where ClickHouse's clock was set back", async () => {
  const { world, steps, judgement } = setUp();
  Object.assign(world, { announced: 160, until: [160, 161] });
  expect(await judgement.required(signal)).toBe(160);
  expect(steps.filter((step) => step === "stable?")).toHaveLength(2);
});

it("has batches that take too long refused", async () => {
  const { world, steps, judgement } = setUp();
  world.until = [0];
  world.onStableRead = () => {
    world.now += PATIENCE_MS / 2;
  };
  expect(await judgement.required(signal)).toBe(100);
  expect(steps.join(", ")).toBe("begin, look, stable?, stable?, announce 100, require 7, running?, running?");
});

it("says which INSERTs it waits for, twice a minute", async () => {
  const { world, warned, judgement } = setUp();
  world.running = [["a"], ["a"], ["a"], []];
  world.onRunning = () => {
    world.now += 20_000;
  };
  await judgement.required(signal);
  expect(warned).toEqual([["a"]]);
});

it("requires nothing when its signal aborts, nor when the stable instant cannot be read", async () => {
  const { world, steps, judgement } = setUp();
  const stop = new AbortController();
  world.onStableRead = () => stop.abort(new Error("stops"));
  await expect(judgement.required(stop.signal)).rejects.toThrow("stops");
  world.onStableRead = () => {
    throw new Error("away");
  };
  await expect(judgement.required(signal)).rejects.toThrow("away");
  expect(steps.filter((step) => /^(?:require|announce)/.test(step))).toEqual([]);
});
