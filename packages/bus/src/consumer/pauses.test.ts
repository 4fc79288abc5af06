import { afterEach, expect, it, vi } from "vitest";
import { createMembership } from "./membership.ts";
import { createPauses } from "./pauses.ts";

const [A0, A1, B0] = [
  { topic: "a", partition: 0 },
  { topic: "a", partition: 1 },
  { topic: "b", partition: 0 },
] as const;

afterEach(() => {
  vi.useRealTimers();
});

const start = () => {
  const membership = Object.assign(createMembership(), { phase: "joined" } as const);
  const calls: string[] = [];
  const say = (what: string) => (topics: { topic: string; partitions: number[] }[]) => {
    calls.push(`${what} ${topics.map(({ topic, partitions }) => topic + partitions.join("")).join()}`);
  };
  return {
    membership,
    calls,
    pauses: createPauses({ membership, pause: say("pause"), resume: say("resume") }),
  };
};

it("pauses partitions by topic and resumes those that are paused", () => {
  const { calls, pauses } = start();
  pauses.pause([A0, B0, A1]);
  pauses.pause([]);
  expect([pauses.count(), pauses.isPaused(A1)]).toEqual([3, true]);
  pauses.resume([A0, A1]);
  pauses.resume([A0]);
  expect([pauses.count(), pauses.isPaused(A1)]).toEqual([1, false]);
  expect(calls).toEqual(["pause a01,b0", "resume a01"]);
});

it("leaves what is resumed during a rejoin to the end of the join", () => {
  const { membership, calls, pauses } = start();
  pauses.pause([A0]);
  Object.assign(membership, { phase: "draining" });
  pauses.resume([A0]);
  pauses.pause([B0]);
  expect(pauses.count()).toBe(1);
  pauses.lift();
  pauses.lift();
  expect([pauses.count(), calls]).toEqual([0, ["pause a0", "resume a0"]]);
});

it("resumes after a time, unless a join has lifted the pause", () => {
  vi.useFakeTimers();
  const { membership, calls, pauses } = start();
  pauses.pauseFor(5000, A0);
  vi.advanceTimersByTime(4999);
  expect(pauses.isPaused(A0)).toBe(true);
  vi.advanceTimersByTime(1);
  expect([pauses.isPaused(A0), calls]).toEqual([false, ["pause a0", "resume a0"]]);

  pauses.pauseFor(5000, A0);
  pauses.lift();
  Object.assign(membership, { epoch: membership.epoch + 1 });
  pauses.pause([A0]);
  vi.advanceTimersByTime(5000);
  expect(pauses.isPaused(A0)).toBe(true);
});
