import { expect, it } from "vitest";
import { createStandstillMonitor, describeStandstill } from "./job-standstill.ts";
import { AT, RUNNING_JOB as job } from "./job-view.fixture.ts";

const at = AT.getTime();

const watching = (workers: () => Promise<number | null>) => {
  const said: string[] = [];
  let seconds = 0;
  const watch = createStandstillMonitor({
    workers,
    report: (text) => said.push(text),
    now: () => new Date(at + seconds * 1_000),
  });
  return {
    said,
    see: watch.see,
    restart: watch.restart,
    after: async (more: number): Promise<void> => {
      seconds += more;
      await watch.look();
    },
  };
};

it("says once that nobody works, and again when the job has moved in between", async () => {
  const { said, see, after } = watching(() => Promise.resolve(0));
  see(job);
  await after(29);
  expect(said).toEqual([]);
  await after(1);
  expect(said).toEqual(["no jobs process is connected: start the jobs service, the job waits for it"]);
  await after(60);
  see({ ...job });
  await after(60);
  expect(said).toHaveLength(1);
  see({ ...job, progress: { done: 3_000, total: 10_000, unit: "rows" } });
  await after(29);
  expect(said).toHaveLength(1);
  await after(1);
  expect(said).toHaveLength(2);
});

it("counts a finished part as a move", async () => {
  const { said, see, after } = watching(() => Promise.resolve(1));
  see({ ...job, state: "parts", parts: { total: 3, done: 0, failed: 0 } });
  await after(29);
  see({ ...job, state: "parts", parts: { total: 3, done: 1, failed: 0 } });
  await after(29);
  expect(said).toEqual([]);
});

it("is less patient with a job that nobody takes, and waits for the next attempt of a delayed one", async () => {
  const waiting = watching(() => Promise.resolve(0));
  waiting.see({ ...job, state: "waiting", progress: null });
  await waiting.after(10);
  expect(waiting.said).toHaveLength(1);

  const delayed = watching(() => Promise.resolve(0));
  delayed.see({ ...job, state: "delayed", nextAttemptAt: new Date(at + 100_000) });
  await delayed.after(109);
  expect(delayed.said).toEqual([]);
  await delayed.after(1);
  expect(delayed.said).toHaveLength(1);
});

it("says nothing while Redis does not answer, and looks again", async () => {
  let asked = 0;
  const { said, see, after } = watching(() => {
    asked += 1;
    return asked === 1 ? Promise.reject(new Error("away")) : Promise.resolve(2);
  });
  see(job);
  await after(30);
  expect(said).toEqual([]);
  await after(1);
  expect(said).toHaveLength(1);
});

it("begins anew when Redis is back", async () => {
  const { said, see, after, restart } = watching(() => Promise.resolve(0));
  see(job);
  await after(29);
  restart();
  await after(29);
  expect(said).toEqual([]);
});

it.each([
  ["active", 0, "start the jobs service"],
  ["active", 1, "one jobs process is connected: a step of it takes long, or Kafka"],
  ["parts", 3, "3 jobs processes are connected"],
  ["waiting", 2, "shows what runs before it"],
  ["active", null, "check that the jobs service runs"],
] as const)("%s with %s workers: %s", (state, workers, text) => {
  expect(describeStandstill(state, workers)).toContain(text);
});
