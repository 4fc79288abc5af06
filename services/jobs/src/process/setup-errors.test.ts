import type { RunnableJob } from "@conversation-export/queue";
import { WarehouseError } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { withSetupErrors } from "./setup-errors.ts";

const failing = (error: Error): RunnableJob["work"][] => {
  const fails = (): Promise<never> => Promise.reject(error);
  return [
    { kind: "whole", run: fails },
    { kind: "split", split: fails, runPart: fails, finish: fails },
  ];
};

it.each([
  ["ACCESS_DENIED", { code: "warehouse_setup", retryable: false }],
  ["UNKNOWN_TABLE", { code: "warehouse_setup", retryable: false }],
  ["UNKNOWN_DATABASE", { code: "warehouse_setup", retryable: false }],
  ["ECONNREFUSED", { code: "warehouse_unavailable", retryable: true }],
  ["MEMORY_LIMIT_EXCEEDED", { code: "warehouse_unavailable", retryable: true }],
  ["MEMORY_LIMIT_EXCEEDED", { code: "warehouse_limit", retryable: false }, 2],
  ["TIMEOUT_EXCEEDED", { code: "warehouse_limit", retryable: false }, 3],
  ["ECONNREFUSED", { code: "warehouse_unavailable", retryable: true }, 3],
])("%s ends a job as %j", async (name, expected, attemptNumber = 1) => {
  const error = new WarehouseError("warehouse_unavailable", name, true, null);
  for (const work of failing(error)) {
    const { work: reported } = withSetupErrors({ name: "backfill", options: {}, work });
    const context = { attempt: attemptNumber } as never;
    const attempts =
      reported.kind === "whole"
        ? [reported.run(context)]
        : [reported.split(context), reported.runPart(context), reported.finish(context, [])];
    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject(expected);
  }
});
