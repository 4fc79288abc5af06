import { createWatermarkWriter, migrate, type WatermarkWriter } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { createSessions } from "../system/warehouse-sessions.ts";

const SECOND = 1_000_000;
/** Of the machine that ClickHouse runs on as well. */
const nowMicros = (): number => Date.now() * 1000;

let stack: TestStack;
let store: WatermarkWriter;
const sessions = createSessions();

beforeAll(async () => {
  stack = await startTestStack({ servers: ["clickhouse"] });
  await migrate({ url: stack.clickhouse.url("migrator") });
  store = createWatermarkWriter({ session: sessions.open(stack.clickhouse.url("writer")) });
});

afterAll(async () => {
  await sessions.close();
  await stack?.stop();
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
