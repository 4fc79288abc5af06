import { WarehouseError } from "@conversation-export/warehouse";
import { expect, it, onTestFinished, vi } from "vitest";
import { createRunUpload } from "./run-upload.ts";

const stale = (): Error =>
  new WarehouseError("warehouse_unavailable", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", true, null);

it("takes another ticket while the last one is stale, for a minute, and leaves the rest to its job", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let stamp = 0;
  const runUpload = createRunUpload({
    gate: { ticket: async () => ({ stamp: (stamp += 1), generation: 1 }) },
    inFlight: { during: (_stamp, _isSlow, write) => write() },
  });
  const used: number[] = [];
  const running = runUpload(async (ticket) => {
    used.push(ticket.stamp);
    if (used.length < 3) throw stale();
  });
  await vi.advanceTimersByTimeAsync(1_000);
  await running;
  expect(used).toEqual([1, 2, 3]);
  const failing = expect(runUpload(() => Promise.reject(stale()))).rejects.toMatchObject({ retryable: true });
  await vi.advanceTimersByTimeAsync(61_000);
  await failing;
  expect(stamp).toBeGreaterThan(3);
});
