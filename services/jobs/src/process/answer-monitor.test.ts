import { expect, it, onTestFinished } from "vitest";
import { createAnswerMonitor } from "./answer-monitor.ts";

function watch() {
  const redis = { broken: false, pings: 0 };
  const made = createAnswerMonitor({
    everyMs: 1,
    name: "Redis",
    ping: () => {
      redis.pings += 1;
      return redis.broken ? Promise.reject(new Error("gone")) : Promise.resolve();
    },
  });
  onTestFinished(() => made.stop());
  return { redis, made };
}

it("says why before it has asked, and true after", async () => {
  const { made } = watch();
  expect(made.answers()).toMatch(/not been asked/);
  await made.start();
  expect(made.answers()).toBe(true);
});

it("follows Redis down and up again", async () => {
  const { redis, made } = watch();
  await made.start();
  redis.broken = true;
  await expect.poll(() => made.answers()).toBe("gone");
  redis.broken = false;
  await expect.poll(() => made.answers()).toBe(true);
});

it("asks no more after stop and is not ready then", async () => {
  const { redis, made } = watch();
  await made.start();
  await expect.poll(() => redis.pings).toBeGreaterThan(2);
  await made.stop();
  const asked = redis.pings;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(redis.pings).toBe(asked);
  expect(made.answers()).toBe("stopping");
});
