import type { PartitionLag } from "@conversation-export/bus";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createLagMonitor } from "./lag-monitor.ts";

const INTERVAL_MS = 5_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("shows the lag of its partitions, and none while the brokers do not say", async () => {
  const { metrics, log, linesOf } = createTestMetrics();
  const lagOf = (partition: number, committed: number): PartitionLag => ({
    topic: "messages",
    partition,
    start: 0,
    end: 9,
    committed,
    lag: 9 - committed,
  });
  let fetchLag = (): Promise<PartitionLag[]> => Promise.resolve([lagOf(0, 4), lagOf(1, 1)]);
  const monitor = createLagMonitor({
    admin: { start: async () => {}, stop: async () => {}, fetchLag: () => fetchLag() },
    groupId: "group",
    topics: ["messages"],
    assigned: () => [{ topic: "messages", partition: 0 }],
    intervalMs: INTERVAL_MS,
    metrics,
    log,
  });
  const samples = async (): Promise<readonly string[][]> => [
    await linesOf("conversation_export_ingest_lag_records{"),
    await linesOf("conversation_export_ingest_lag_unknown{"),
  ];
  const one = (value: number): unknown => [
    expect.stringMatching(new RegExp(`topic="messages",partition="0".* ${value}$`)),
  ];

  await monitor.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(await samples()).toEqual([one(5), one(0)]);
  fetchLag = () => Promise.reject(new Error("away"));
  await vi.advanceTimersByTimeAsync(INTERVAL_MS);
  expect(await samples()).toEqual([[], one(1)]);
  fetchLag = () => Promise.resolve([lagOf(0, 9)]);
  await vi.advanceTimersByTimeAsync(INTERVAL_MS);
  expect(await samples()).toEqual([one(0), one(0)]);
  await monitor.stop();
});
