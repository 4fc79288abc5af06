import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startSystem } from "../system/system.ts";
import { figureLine, measureCapacity } from "./capacity.ts";
import { benchAnalytics } from "./analytics.ts";
import { benchBackfill } from "./backfill.ts";
import { benchCompaction } from "./compaction.ts";
import { benchErasure } from "./erasure.ts";
import { benchFeed } from "./feed.ts";
import { benchGrowth } from "./growth.ts";
import { drawGrowth } from "./growth-chart.ts";
import { FLAT, growthResult, measureGrowth } from "./growth-reads.ts";
import { measureServices } from "./growth-services.ts";
import { benchHttp } from "./http.ts";
import { benchIdentity } from "./identity.ts";
import { benchIngest } from "./ingest.ts";
import { benchLanding } from "./landing.ts";
import { benchPages } from "./pages.ts";
import { benchReaders } from "./readers.ts";
import { reportLine, type Result } from "./report.ts";

/**
 * Runs all parts, or one: BENCH=ingest, landing, pages, feed, http, readers, compaction, identity, backfill,
 * growth, erasure or capacity.
 * CONVERSATIONS and EVENTS set the sizes; with UPDATE=1 growth draws its picture anew.
 */
const GROWTH_PICTURE = fileURLToPath(new URL("../../docs/pictures/growth.svg", import.meta.url));
const only = process.env["BENCH"] ?? "";
const conversations = Number(process.env["CONVERSATIONS"] ?? 1_000_000);
const events = Number(process.env["EVENTS"] ?? 200_000);

const started = performance.now();
const log = (line: string): void => {
  console.error(`[${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s] ${line}`);
};

/** Prints the lines of a part as soon as they are there: others may still fail. */
const report = (results: readonly Result[]): void => {
  for (const result of results) console.log(reportLine(result));
};

const inSystem = async (
  part: string,
  work: (system: Awaited<ReturnType<typeof startSystem>>) => Promise<Result[]>,
): Promise<void> => {
  if (only !== "" && only !== part) return;
  log(`${part}: starting servers`);
  const system = await startSystem(`bench-${part}`);
  try {
    report(await work(system));
  } catch (error) {
    console.error(`${part} failed:`, error);
    process.exitCode = 1;
  } finally {
    await system.stop();
  }
};

await inSystem("ingest", (system) => benchIngest(system, events, log));
await inSystem("landing", (system) => benchLanding(system, events, log));
await inSystem("pages", (system) => benchPages(system, conversations, log));
await inSystem("feed", (system) => benchFeed(system, conversations, log));
await inSystem("http", (system) => benchHttp(system, conversations, log));
await inSystem("readers", (system) => benchReaders(system, conversations, log));
await inSystem("readers", (system) => benchAnalytics(system, conversations, log));
// 2,000,000 rows: four exports of each conversation.
await inSystem("compaction", (system) => benchCompaction(system, Math.min(conversations, 500_000), log));
await inSystem("identity", async (system) => {
  // 300,000 conversations of each of two clients, exported three times.
  const sizes = { conversations: Math.min(conversations, 300_000), events: Math.min(events, 100_000) };
  const { results: compared, figures } = await benchIdentity(system, sizes, log);
  for (const figure of figures) console.log(figureLine(figure));
  return compared;
});
// A million records of each kind at most, at three sizes.
if (only === "growth") {
  report(await benchGrowth(conversations, log));
  const lines = await measureGrowth(conversations, log);
  report(lines.map((line) => growthResult(line)));
  if (process.env["UPDATE"] === "1") writeFileSync(GROWTH_PICTURE, drawGrowth(lines));
  report((await measureServices(conversations, log)).map((line) => growthResult(line, FLAT)));
}
if (only === "backfill") report(await benchBackfill(events, log));
if (only === "erasure") {
  await inSystem("erasure", async (system) => {
    for (const figure of await benchErasure(system, Math.min(conversations, 700_000), log))
      console.log(figureLine(figure));
    return [];
  });
}
if (only === "capacity") {
  await inSystem("capacity", async (system) => {
    for (const figure of await measureCapacity(system, events, log)) console.log(figureLine(figure));
    return [];
  });
}
