import { createLogger, createMetrics } from "@conversation-export/runtime";
import { createIngestMetrics } from "./ingest-metrics.ts";

export const createTestMetrics = () => {
  const registry = createMetrics({ service: "test" });
  const linesOf = async (name: string): Promise<string[]> =>
    (await registry.text()).split("\n").filter((line) => line.startsWith(name));
  const log = createLogger({ service: "test", level: "silent" });
  return { registry, metrics: createIngestMetrics(registry), log, linesOf };
};
