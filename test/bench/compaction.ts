import { formatTimestampZ } from "@conversation-export/domain";
import { compactJob, createJobClient } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { closeAllWindows, keepParts } from "../system/compaction-load.ts";
import type { System } from "../system/system.ts";
import { median, type Result } from "./report.ts";
import { interleaved, timed } from "./rounds.ts";
import { getBytes } from "./warehouse-http.ts";
import { fillWindow, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const PAGE = 10_000;
const EXPORTS = 4;
const PARTS = 200;
const ROUNDS = { rounds: 9, warm: 2 };
/** Positions in the window at which pages are read. */
const PLACES = [0, 0.5, 0.98];
const DAY = 86_400_000_000;

const pageUrl = (apiUrl: string, by: "created" | "updated", place: number): string => {
  const since = formatTimestampZ(WINDOW_START + Math.floor(WINDOW_MICROS * place));
  const to = formatTimestampZ(WINDOW_START + WINDOW_MICROS + 4 * DAY);
  return `${apiUrl}/v2/export/conversations?${by}_since=${since}&${by}_to=${to}&page_size=${PAGE}`;
};

/** Follows a compaction to its end; throws when it fails. */
const compact = async (system: System, log: (line: string) => void): Promise<void> => {
  const queue = createJobClient({
    url: system.stack.redis.url,
    log: createLogger({ service: "bench", level: "error" }),
  });
  await queue.start();
  try {
    const { id } = await queue.add(compactJob, { range: null, force: false, dryRun: false });
    for await (const job of queue.follow("compact", id)) {
      if (job.state === "failed" || job.state === "cancelled") throw new Error(job.reason ?? job.state);
      if (job.state !== "completed") continue;
      log(`${compactJob.result.parse(job.result).supersededUpdates} superseded entries removed`);
    }
  } finally {
    await queue.stop();
  }
};

/** Reads pages of a window of many parts before and after its compaction. */
export const benchCompaction = async (
  system: System,
  conversations: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const operator = system.stack.clickhouse.url("migrator");
  await keepParts(operator, ["conversations", "conversation_updates", "handoffs"]);
  const blockRows = Math.max(100, Math.round((conversations * EXPORTS) / PARTS));
  await fillWindow(operator, { conversations, exports: EXPORTS, blockRows }, log);
  await closeAllWindows(system.stack.clickhouse.url("jobs"));
  await system.service("export-api", { LOG_LEVEL: "warn" });
  const key = await system.key("bench");

  const pages = (by: "created" | "updated") =>
    PLACES.map((place) => () => getBytes(pageUrl(system.apiUrl, by, place), key));
  const measure = async (when: string): Promise<{ created: number; updated: number }> => {
    const times = await interleaved([...pages("created"), ...pages("updated")], ROUNDS);
    const inMs = (each: readonly number[]): string => each.map((ms) => ms.toFixed(0)).join(", ");
    const [created, updated] = [times.slice(0, PLACES.length), times.slice(PLACES.length)];
    log(`pages ${when}, ms: created ${inMs(created)}; updated ${inMs(updated)}`);
    return { created: median(created), updated: median(updated) };
  };

  const before = await measure("before");
  const jobs = await system.service("jobs", {
    LOG_LEVEL: "warn",
    WINDOWS_INTERVAL_SECONDS: "0",
    COMPACT_INTERVAL_SECONDS: "0",
  });
  const started = performance.now();
  let isOver = false;
  const readMeanwhile = async (): Promise<number[]> => {
    const times: number[] = [];
    while (!isOver) for (const page of pages("created")) times.push(await timed(page));
    return times.toSorted((a, b) => a - b);
  };
  const reading = readMeanwhile();
  await compact(system, log);
  isOver = true;
  const meanwhile = await reading;
  const slow = meanwhile[Math.ceil(meanwhile.length * 0.99) - 1] ?? Number.NaN;
  log(
    `compaction took ${((performance.now() - started) / 1000).toFixed(0)} s; ${meanwhile.length} pages meanwhile, median ${median(meanwhile).toFixed(0)} ms, 99th percentile ${slow.toFixed(0)} ms, slowest ${meanwhile.at(-1)?.toFixed(0)} ms`,
  );
  await jobs.kill("SIGTERM");
  const after = await measure("after");

  const speedup = (name: string, list: "created" | "updated"): Result => {
    const ratio = before[list] / after[list];
    return { name, ours: after[list], peer: before[list], ratio, goal: ">=1", reached: ratio >= 1 };
  };
  return [
    speedup("compaction_page_speedup", "created"),
    speedup("compaction_updated_page_speedup", "updated"),
    {
      name: "page_p99_beside_compaction",
      ours: slow,
      peer: median(meanwhile),
      ratio: slow / median(meanwhile),
      goal: "<=4",
      reached: slow / median(meanwhile) <= 4,
    },
  ];
};
