import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findGoProgram } from "../../outside/go-program.ts";
import { type Prometheus, type ScrapeTarget, startPrometheus } from "../../outside/prometheus.ts";
import { startSystem, type System } from "../../system/system.ts";
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
/** FAULTS=kafka-away,ingest-hangs draws these alone. */
const WANTED = (process.env["FAULTS"] ?? "").split(",").filter((name) => name !== "");
const SCRAPE_SECONDS = 5;
const RUN_MS = 150_000;
const BEFORE_MS = 30_000;
const FAULT_MS = 80_000;
const AFTER_MS = 50_000;
/** For starts and stops of servers. */
const SLACK_MS = 300_000;
/** In which what is being sent is acknowledged. */
const PAUSE_MS = 1_000;

const targetOf = (pod: string, metricsUrl: string): ScrapeTarget => ({
  job: `conversation-export-${pod.replace(/-\d+$/, "")}`,
  address: new URL(metricsUrl).host,
  namespace: "production",
  pod,
});

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

/** What is done to the servers, and the dashboards that show it. */
type Fault = {
  readonly name: string;
  readonly dashboards: readonly string[];
  strike(): Promise<unknown>;
  heal(): Promise<unknown>;
};

const drawRun = async (
  prometheus: Prometheus,
  range: TimeRange,
  dashboards: readonly string[],
  nameOf: (dashboard: string) => string,
): Promise<void> => {
  for (const name of dashboards) {
    const dashboard = readDashboard(`${name}.json`);
    const svg = drawDashboard(dashboard, await askPanels(dashboard, prometheus, range), range);
    writeFileSync(join(PICTURES, `${nameOf(name)}.svg`), svg);
  }
};

/** Lets the whole system work for some minutes, without faults and with each, and draws what Prometheus saw. */
const drawAll = async (system: System, program: string): Promise<void> => {
  const { stack, producer, partitions, apiUrl } = system;
  const { process: first } = await system.another("ingest", {});
  const { process: second } = await system.another("ingest", {});
  // The pods that the processes stand for.
  const pods = {
    "ingest-0": first,
    "ingest-1": second,
    "export-api-0": await system.service("export-api"),
    "jobs-0": await system.service("jobs"),
  };
  const keys = new Map<string, string>();
  for (const client of CLIENTS) keys.set(client, await system.key(client));
  const targets = Object.entries(pods).map(([pod, { metricsUrl }]) => targetOf(pod, metricsUrl));
  const prometheus = await startPrometheus(program, { targets, interval: SCRAPE_SECONDS });
  let isPaused = false;
  let mayFail = false;
  const traffic = { producer, partitions, apiUrl, keys, seed: "operators", isPaused: () => isPaused };
  const onFailure = (error: unknown): void => {
    if (!mayFail) throw error;
  };

  const all: readonly Fault[] = [
    {
      name: "clickhouse-away",
      dashboards: ["pipeline", "export-api"],
      strike: () => stack.clickhouse.stop(),
      heal: () => stack.clickhouse.start(),
    },
    {
      name: "kafka-away",
      dashboards: ["pipeline"],
      strike: async () => {
        isPaused = true;
        await sleep(PAUSE_MS);
        await stack.kafka.stop();
      },
      heal: async () => {
        await stack.kafka.start();
        isPaused = false;
      },
    },
    {
      name: "ingest-hangs",
      dashboards: ["pipeline"],
      strike: async () => process.kill(first.pid, "SIGSTOP"),
      heal: async () => process.kill(first.pid, "SIGCONT"),
    },
  ];

  const faults = all.filter(({ name }) => WANTED.length === 0 || WANTED.includes(name));

  try {
    const from = Date.now();
    const end = from + RUN_MS + faults.length * (BEFORE_MS + FAULT_MS + AFTER_MS) + SLACK_MS;
    const working = runTraffic({ ...traffic, onFailure }, end);
    const steps = async (): Promise<void> => {
      await sleep(RUN_MS);
      const normal = { from, to: Date.now() };
      if (WANTED.length === 0) await drawRun(prometheus, normal, DASHBOARDS, (name) => `${name}-dashboard`);
      for (const { name, dashboards, strike, heal } of faults) {
        const before = Date.now();
        await sleep(BEFORE_MS);
        mayFail = true;
        await strike();
        await sleep(FAULT_MS);
        await heal();
        await sleep(AFTER_MS);
        const range = { from: before, to: Date.now() };
        await drawRun(prometheus, range, dashboards, (dashboard) => `${dashboard}-${name}`);
      }
    };
    await Promise.race([working.then(() => Promise.reject(new Error("the traffic ended first"))), steps()]);
  } finally {
    await prometheus.stop();
  }
};

const program = findGoProgram("prometheus");
if (program === undefined) throw new Error("no prometheus: deploy/check/go-program.sh prometheus builds it");
const system = await startSystem("pictures");
try {
  await drawAll(system, program);
} finally {
  await system.stop();
}
// The customers would ask on until their time is over.
process.exit();
