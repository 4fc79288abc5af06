import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProducer } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import { variable, type Variables } from "../../demo/env-variables.ts";
import { createKeys } from "../../demo/keys.ts";
import { createLocalSystem } from "../../demo/local-system.ts";
import { findGoProgram } from "../../outside/go-program.ts";
import { type Prometheus, startPrometheus } from "../../outside/prometheus.ts";
import type { Answer } from "../answer.ts";
import { type Dashboard, readDashboard } from "../dashboard.ts";
import type { TimeRange } from "../fill-sql.ts";
import { drawDashboard } from "../picture.ts";
import { fillPromql } from "./fill-promql.ts";
import { runTraffic } from "./live-traffic.ts";
import { matrixAnswer } from "./matrix-answer.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PICTURES = join(ROOT, "docs/pictures");
const DASHBOARDS = ["pipeline", "export-api", "warehouse-and-jobs"];
const CLIENTS = ["acme", "globex", "initech"];
/** The default of `export-ops topics create`. */
const PARTITIONS = 6;
const SCRAPE_SECONDS = 5;
const RUN_MS = 150_000;

const targetsOf = (variables: Variables) =>
  ["ingest", "export-api", "jobs"].map((service) => ({
    job: `conversation-export-${service}`,
    address: new URL(variable(variables, `${service.toUpperCase().replace("-", "_")}_METRICS_URL`)).host,
    namespace: "production",
    pod: `${service}-0`,
  }));

/** Asks each panel's own expressions, with all namespaces, jobs and clients chosen. */
const askPanels = async (
  { panels, templating }: Dashboard,
  prometheus: Prometheus,
  range: TimeRange,
): Promise<Map<number, Answer>> => {
  const variables = Object.fromEntries(templating.list.map(({ name, allValue = "" }) => [name, allValue]));
  const filling = { variables, step: SCRAPE_SECONDS, scrapeInterval: SCRAPE_SECONDS };
  const answers = new Map<number, Answer>();
  for (const { id, targets = [] } of panels) {
    const asked = await Promise.all(
      targets.map(async ({ expr = "", legendFormat = "" }) => ({
        legendFormat,
        matrix: await prometheus.query(fillPromql(expr, filling), range, SCRAPE_SECONDS),
      })),
    );
    answers.set(id, matrixAnswer(asked));
  }
  return answers;
};

/** Lets the whole system work for some minutes, and draws what Prometheus saw of it. */
const drawRun = async (variables: Variables, program: string): Promise<void> => {
  const prometheus = await startPrometheus(program, {
    targets: targetsOf(variables),
    interval: SCRAPE_SECONDS,
  });
  const producer = createProducer({
    brokers: variable(variables, "KAFKA_BROKERS").split(","),
    clientId: "pictures",
    log: createLogger({ service: "pictures", level: "silent" }),
  });
  try {
    await producer.start();
    const keys = await createKeys(variables, CLIENTS);
    const from = Date.now();
    const apiUrl = variable(variables, "EXPORT_API_URL");
    await runTraffic({ producer, partitions: PARTITIONS, apiUrl, keys, seed: "operators" }, from + RUN_MS);
    const range = { from, to: from + RUN_MS };
    for (const name of DASHBOARDS) {
      const dashboard = readDashboard(`${name}.json`);
      const svg = drawDashboard(dashboard, await askPanels(dashboard, prometheus, range), range);
      writeFileSync(join(PICTURES, `${name}-dashboard.svg`), svg);
    }
  } finally {
    await Promise.allSettled([producer.stop(), prometheus.stop()]);
  }
};

const program = findGoProgram("prometheus");
if (program === undefined) throw new Error("no prometheus: deploy/check/go-program.sh prometheus builds it");
const system = createLocalSystem(CLIENTS[0] ?? "", "pictures");
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => void system.stop().finally(() => process.exit(130)));
try {
  await drawRun(await system.start(), program);
} finally {
  await system.stop();
}
