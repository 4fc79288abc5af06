import { ClickHouseError } from "@clickhouse/client";
import { expect, test } from "vitest";
import { toWarehouseError } from "./warehouse-error.ts";

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
