import { createLogger, createMetrics } from "@conversation-export/runtime";
import { expect, it, vi } from "vitest";
import { createAuditMonitor } from "./audit-monitor.ts";

it("says how old a change is, also while the audit cannot be read", async () => {
  const answers = [[{ command: "keys create", state: "done" as const, ageSeconds: 10 }]];
  const last = vi.fn(() => Promise.resolve(answers.shift() ?? Promise.reject(new Error("away"))));
  const metrics = createMetrics({ service: "test" });
  let elapsed = 5_000;
  const watch = createAuditMonitor({
    store: { last },
    everyMs: 1,
    elapsed: () => elapsed,
    metrics,
    log: createLogger({ service: "test", level: "silent" }),
  });
  await watch.start();
  await expect.poll(() => last.mock.calls.length).toBeGreaterThan(1);
  elapsed += 120_000;
  await expect.poll(() => last.mock.calls.length).toBeGreaterThan(3);
  expect(await metrics.text()).toMatch(/^conversation_export_operator_change_age_seconds\{.+\} 130$/m);
  await watch.stop();
});
