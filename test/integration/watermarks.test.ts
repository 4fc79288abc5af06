import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Stack, startStack } from "@conversation-export/local-stack";
import { createWatermarkWriter, migrate, type WatermarkWriter } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";

const SECOND = 1_000_000;
/** Of the machine that ClickHouse runs on as well. */
const nowMicros = (): number => Date.now() * 1000;

let dir: string;
let stack: Stack;
let store: WatermarkWriter;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "watermarks-test-"));
  stack = await startStack({ dir, servers: ["clickhouse"] });
  await migrate({ url: stack.clickhouse.url("migrator") });
  store = createWatermarkWriter({ url: stack.clickhouse.url("writer"), application: "test" });
});

afterAll(async () => {
  await store?.close();
  await stack?.stop();
  await rm(dir, { recursive: true, force: true });
});

it("keeps the largest instant of each list", async () => {
  const later = nowMicros();
  expect(await store.save("conversations", later)).toBe(true);
  expect(await store.save("conversations", later - SECOND)).toBe(true);
  expect(await store.save("end_users", later - SECOND)).toBe(true);
  expect(await store.load()).toEqual({ conversations: later, end_users: later - SECOND });
});

it("never stores an instant that ClickHouse's clock has not reached", async () => {
  const before = await store.load();
  expect(await store.save("messages", nowMicros() + 3_600 * SECOND)).toBe(false);
  expect(await store.load()).toEqual(before);
  const soon = nowMicros() + 0.6 * SECOND;
  const saved = store.save("messages", soon);
  while (nowMicros() < soon - 0.1 * SECOND) expect(await store.load()).toEqual(before);
  expect(await saved).toBe(true);
  expect(nowMicros()).toBeGreaterThanOrEqual(soon);
  expect((await store.load()).messages).toBe(soon);
});
