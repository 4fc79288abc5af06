import { createLogger } from "@conversation-export/runtime";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createRunHolders } from "./run-holders.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("reports at once, and then every ten seconds, that it is alive and which Redis it uses, although that is away meanwhile", async () => {
  const announced: string[] = [];
  let others = "main";
  let redis: () => Promise<string> = () => Promise.resolve("main");
  const holders = createRunHolders({
    coordination: {
      noteProcess: async (process) => {
        expect(process.id).toBe(holders.own);
        announced.push(process.redis);
        if (announced.length === 2) throw new Error("away");
      },
      processes: async () => [{ id: "other", redis: others }],
    },
    redisId: () => redis(),
    log: createLogger({ service: "test", level: "silent" }),
  });
  await holders.part.start();
  onTestFinished(async () => void (await holders.part.stop()));
  await vi.advanceTimersByTimeAsync(10_000);
  redis = () => Promise.reject(new Error("away"));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(announced).toEqual(["main", "main", "main"]);
  expect(await holders.alive()).toEqual(new Set([holders.own, "other"]));
  expect(await holders.isOnlyRedis()).toBe(true);
  others = "second";
  expect(await holders.isOnlyRedis()).toBe(false);
});
