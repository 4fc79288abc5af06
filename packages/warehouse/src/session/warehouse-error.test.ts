import { ClickHouseError } from "@clickhouse/client";
import { expect, test } from "vitest";
import { isAwayError, toWarehouseError } from "./warehouse-error.ts";

test.each([
  ["QUOTA_EXCEEDED", "201"],
  ["MEMORY_LIMIT_EXCEEDED", "241"],
  ["TIMEOUT_EXCEEDED", "159"],
  ["TOO_MANY_SIMULTANEOUS_QUERIES", "202"],
])("a query that meets a limit of its user may be tried again: %s", (type, code) => {
  expect(toWarehouseError(new ClickHouseError({ message: "", code, type }))).toMatchObject({
    code: "warehouse_unavailable",
    causeName: type,
    retryable: true,
  });
});

test("errors of several servers name the server", () => {
  const refused = new ClickHouseError({ message: "", code: "60", type: "UNKNOWN_TABLE" });
  expect(toWarehouseError(refused, "http://two:8123").message).toBe(
    "warehouse_unavailable: UNKNOWN_TABLE (http://two:8123)",
  );
});

test("a timed-out request is retryable, and its server counts as away", () => {
  const error = toWarehouseError(new Error("Timeout error."));
  expect(error).toMatchObject({
    code: "warehouse_unavailable",
    causeName: "TimeoutError",
    retryable: true,
  });
  expect(isAwayError(error)).toBe(true);
});

test.each([
  [Object.assign(new Error("connect"), { code: "ECONNREFUSED" }), true],
  [new Error("<html>Bad Gateway</html>"), false],
  [new ClickHouseError({ message: "", code: "60", type: "UNKNOWN_TABLE" }), false],
])("what answers is not away: %s", (error, away) => {
  expect(isAwayError(toWarehouseError(error))).toBe(away);
});

test.each([
  new TypeError("bug"),
  new RangeError("bug"),
])("a bug of this program is not tried again: %s", (bug) => {
  expect(toWarehouseError(bug)).toMatchObject({ code: "warehouse_query_failed", retryable: false });
});
