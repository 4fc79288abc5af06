import { ServiceError } from "@conversation-export/runtime";
import { UnrecoverableError } from "bullmq";
import { expect, it } from "vitest";
import { codeOfFailure, describeFailure, STOP_REASONS, toQueueError } from "./job-failure.ts";

it("reports code and message of an error that has a name, once", () => {
  expect(describeFailure(new ServiceError("gone", "it is gone"))).toBe("gone: it is gone");
  expect(describeFailure(new ServiceError("gone", "gone: TIMEOUT"))).toBe("gone: TIMEOUT");
});

it("reports a bug where it happened, and nothing that its message quotes", () => {
  const reported = describeFailure(new RangeError("jane@example.com"));
  expect(reported).toMatch(/^bug: RangeError at job-failure\.test\.ts:\d+; the log has the rest$/);
  expect(describeFailure("jane@example.com")).not.toContain("jane");
  expect(describeFailure(Object.assign(new Error("x"), { stack: undefined }))).toBe(
    "bug: Error; the log has the rest",
  );
});

it.each([
  ["gone: it is gone", "gone"],
  ["bug: TypeError at a.ts:1; the log has the rest", "bug"],
  ["job stalled more than allowable limit", "stalled"],
  ["Some sentence of somebody else: with a colon", "other"],
  ["", "other"],
])("reads the code of %j as %s", (reason, code) => {
  expect(codeOfFailure(reason)).toBe(code);
});

it("is tried again only when the error says so", () => {
  const passing = toQueueError(new ServiceError("away", "not now", { retryable: true }));
  expect(passing).not.toBeInstanceOf(UnrecoverableError);
  expect(passing.message).toBe("away: not now");
  expect(toQueueError(new ServiceError("never", "not ever"))).toBeInstanceOf(UnrecoverableError);
  expect(toQueueError(new TypeError("x"))).toBeInstanceOf(UnrecoverableError);
  expect(toQueueError(STOP_REASONS.cancelled())).toBeInstanceOf(UnrecoverableError);
});
