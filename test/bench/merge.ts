import { get, pagePath, at, type Reading } from "./reading.ts";
import { median, plainResult, type Result } from "./report.ts";
import { runSql } from "./warehouse-http.ts";
import { LATE } from "./window-data.ts";

const TABLES = ["conversations", "conversation_updates", "handoffs"];
const PLACES = [0.1, 0.5, 0.9];

/** Merges all parts, so it must come last. */
export const benchMerge = async (reading: Reading): Promise<Result[]> => {
  const url = reading.system.stack.clickhouse.url("migrator");
  let isOver = false;
  const merge = async (): Promise<void> => {
    for (const table of TABLES) {
      await runSql(url, `SYSTEM START MERGES ${table}`);
      await runSql(url, `OPTIMIZE TABLE ${table} FINAL`);
    }
    isOver = true;
  };
  const times: number[] = [];
  const read = async (): Promise<void> => {
    for (let page = 0; !isOver; page += 1) {
      const started = performance.now();
      await get(reading, LATE, pagePath("created", at(PLACES[page % PLACES.length] ?? 0), 10_000));
      times.push(performance.now() - started);
    }
  };
  await Promise.all([merge(), read()]);
  const slow = times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
  return [plainResult("page_p99_beside_merge", "ms", slow, median(times), { pages: times.length })];
};
