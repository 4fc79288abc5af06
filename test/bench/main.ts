import { startSystem, type System } from "../system/system.ts";
import { figureLine, measureCapacity } from "./capacity.ts";
import { benchGrowth } from "./growth.ts";
import { growthResult, measureGrowth } from "./growth-reads.ts";
import { benchIngest } from "./ingest.ts";
import { benchLines, benchParquet } from "./lines.ts";
import { benchMemory } from "./memory.ts";
import { benchMerge } from "./merge.ts";
import { benchChanges, benchCreated, benchEmpty, benchUpdated } from "./pages.ts";
import { benchPull } from "./pull.ts";
import { type Reading, startReading } from "./reading.ts";
import { reportLine, type Result } from "./report.ts";
import { benchViews } from "./views.ts";

/** In this order. */
const READING: Readonly<Record<string, (reading: Reading) => Promise<Result[]>>> = {
  created: benchCreated,
  updated: benchUpdated,
  empty: benchEmpty,
  changes: benchChanges,
  lines: benchLines,
  parquet: benchParquet,
  views: benchViews,
  pull: benchPull,
  memory: benchMemory,
  merge: benchMerge,
};

const APART = ["merge", "growth", "capacity"];
const NAMES = ["ingest", ...Object.keys(READING), "growth", "capacity"];

const conversations = Number(process.env["CONVERSATIONS"] ?? 1_000_000);
const events = Number(process.env["EVENTS"] ?? 100_000);
const chosen = process.env["BENCH"]?.split(",") ?? NAMES.filter((name) => !APART.includes(name));
const unknown = chosen.filter((name) => !NAMES.includes(name));
if (unknown.length > 0) throw new Error(`BENCH names ${unknown.join(", ")}; there are ${NAMES.join(", ")}`);
const isChosen = (name: string): boolean => chosen.includes(name);

const started = performance.now();
const log = (line: string): void => {
  console.error(`[${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s] ${line}`);
};

const run = async (name: string, work: () => Promise<Result[]>): Promise<void> => {
  try {
    for (const result of await work()) console.log(reportLine(result));
    log(`${name} is done`);
  } catch (error) {
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  }
};

const inSystem = async (name: string, work: (system: System) => Promise<void>): Promise<void> => {
  log(`starting servers for ${name}`);
  const system = await startSystem(`bench-${name}`);
  try {
    await work(system);
  } finally {
    await system.stop();
  }
};

if (isChosen("ingest"))
  await inSystem("ingest", (system) => run("ingest", () => benchIngest(system, events, log)));
const reading = Object.entries(READING).filter(([name]) => isChosen(name));
if (reading.length > 0)
  await inSystem("reading", async (system) => {
    const filled = await startReading(system, conversations, log);
    for (const [name, bench] of reading) await run(name, () => bench(filled));
  });

const growth = async (): Promise<Result[]> => {
  const jobs = await benchGrowth(conversations, log);
  const lines = await measureGrowth(conversations, log);
  return [...jobs, ...lines.map(growthResult)];
};
if (isChosen("growth")) await run("growth", growth);
if (isChosen("capacity"))
  await inSystem("capacity", (system) =>
    run("capacity", async () => {
      for (const figure of await measureCapacity(system, events, log)) console.log(figureLine(figure));
      return [];
    }),
  );
