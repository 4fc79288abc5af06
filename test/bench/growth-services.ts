import type { ServiceName } from "../system/service-process.ts";
import { startSystem, type System } from "../system/system.ts";
import type { GrowthLine } from "./growth-reads.ts";
import { dimensionsOf, fillShape } from "./growth-shapes.ts";
import { fillBus, idleServer, measureIngest, plainConversations } from "./ingest.ts";
import { median } from "./report.ts";
import { runSql } from "./warehouse-http.ts";

const SERVICES: readonly ServiceName[] = ["ingest", "export-api", "jobs"];
const STARTS = 5;
const EVENTS = 30_000;

const startOf = async (system: System, name: ServiceName): Promise<number> => {
  const times: number[] = [];
  for (let round = 0; round < STARTS; round += 1) {
    const started = performance.now();
    const service = await system.service(name, { LOG_LEVEL: "warn" });
    times.push(performance.now() - started);
    await service.kill("SIGTERM");
  }
  return median(times);
};

export const measureServices = async (
  records: number,
  log: (line: string) => void,
): Promise<GrowthLine[]> => {
  const lines = new Map<string, GrowthLine>();
  for (const { name: by, sizes, shape: shapeOf } of dimensionsOf(records)) {
    for (const size of sizes) {
      const system = await startSystem("bench-growth");
      try {
        const shape = shapeOf(size);
        const operator = system.stack.clickhouse.url("migrator");
        await fillShape((statement) => runSql(operator, statement), shape);
        const note = (read: string, ms: number): void => {
          const before = lines.get(`${read} ${by}`) ?? { read, by, sizes, ms: [] };
          lines.set(`${read} ${by}`, { ...before, ms: [...before.ms, ms] });
          log(`${by} ${size}, ${read}: ${ms.toFixed(1)} ms`);
        };
        for (const name of SERVICES) note(`start of ${name}`, await startOf(system, name));
        // Merging 500 parts would be counted as the cost of events.
        if (by !== "parts") await runSql(operator, "SYSTEM START MERGES");
        const { total } = await fillBus(system, plainConversations(EVENTS), log);
        const { processor } = await measureIngest(system, { total, server: await idleServer(system) }, {});
        // ms for 1,000 events are µs for one.
        note("1,000 conversations by ingest", processor);
      } finally {
        await system.stop();
      }
    }
  }
  return [...lines.values()];
};
