import { ServiceError } from "@conversation-export/runtime";
import { WarehouseError } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createKeepTrying } from "./keep-trying.ts";

const start = () => {
  const { registry, metrics, log } = createTestMetrics();
  return { registry, keepTrying: createKeepTrying({ metrics, log }) };
};
const { signal } = new AbortController();

it("repeats what is not final, and counts each failure by step and code", async () => {
  const { registry, keepTrying } = start();
  let calls = 0;
  let failures = 0;
  const result = await keepTrying({
    step: "messages",
    signal,
    operation: () =>
      ++calls === 2 ? Promise.resolve("done") : Promise.reject(new ServiceError("away", "x")),
    isFinal: () => false,
    onFailure: () => failures++,
  });
  expect([result, calls, failures]).toEqual(["done", 2, 1]);
  expect(await registry.text()).toMatch(
    /conversation_export_ingest_flush_retries_total\{.*step="messages",code="away".*\} 1/,
  );
});

it("ends with a final error and with the signal's reason", async () => {
  const { keepTrying } = start();
  const final = new Error("final");
  const attempt = { step: "x", operation: () => Promise.reject(final), isFinal: () => true };
  await expect(keepTrying({ ...attempt, signal })).rejects.toBe(final);
  const stopped = AbortSignal.abort(new Error("stop"));
  await expect(keepTrying({ ...attempt, signal: stopped })).rejects.toThrow("stop");
});

it("ends with a stale ticket, which no other attempt can use", async () => {
  const { registry, keepTrying } = start();
  const stale = new WarehouseError(
    "warehouse_unavailable",
    "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO",
    true,
    undefined,
  );
  const operation = () => Promise.reject(stale);
  await expect(keepTrying({ step: "x", signal, operation, isFinal: () => false })).rejects.toBe(stale);
  expect(await registry.text()).not.toContain('step="x"');
});
