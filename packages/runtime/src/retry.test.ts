import { describe, expect, it } from "vitest";
import { ServiceError } from "./errors.ts";
import { backoffMs, retry } from "./retry.ts";

const passing = new ServiceError("away", "away", { retryable: true });

const OPTIONS = { initialMs: 100, maxMs: 1000 };

describe("backoffMs", () => {
  it("doubles up to the largest pause and never exceeds it", () => {
    const longest = (attempt: number) => backoffMs(attempt, OPTIONS, () => 0);
    expect([1, 2, 3, 4, 5, 400].map(longest)).toEqual([100, 200, 400, 800, 1000, 1000]);
  });

  it("leaves half of it to chance", () => {
    expect(backoffMs(1, OPTIONS, () => 1)).toBe(50);
  });
});

describe("retry", () => {
  it("repeats trouble that passes and reports each pause", async () => {
    const seen: number[] = [];
    const result = await retry(
      (attempt) => (attempt < 3 ? Promise.reject(passing) : Promise.resolve(attempt)),
      { initialMs: 1, onRetry: (_error, attempt) => seen.push(attempt) },
    );
    expect(result).toBe(3);
    expect(seen).toEqual([1, 2]);
  });

  it("throws at once what is not retryable", async () => {
    let calls = 0;
    const operation = () => {
      calls++;
      return Promise.reject(new Error("bug"));
    };
    await expect(retry(operation)).rejects.toThrow("bug");
    expect(calls).toBe(1);
  });

  it("throws the last error when the deadline would pass", async () => {
    let calls = 0;
    const operation = () => {
      calls++;
      return Promise.reject(passing);
    };
    await expect(retry(operation, { initialMs: 5, deadlineMs: 40 })).rejects.toBe(passing);
    expect(calls).toBeGreaterThan(1);
    expect(calls).toBeLessThan(6);
  });

  it("stops waiting when aborted, with the reason of the signal", async () => {
    const abort = new AbortController();
    const reason = new Error("stopping");
    const waiting = retry(() => Promise.reject(passing), {
      initialMs: 60_000,
      maxMs: 60_000,
      signal: abort.signal,
      onRetry: () => queueMicrotask(() => abort.abort(reason)),
    });
    await expect(waiting).rejects.toBe(reason);
  });
});
