import { formatTimestampZ } from "@conversation-export/domain";
import { PAGED_LISTS, pageStatement } from "@conversation-export/warehouse";
import type { System } from "../system/system.ts";
import { peakMegabytes } from "../system/process-memory.ts";
import { jobsBeside } from "./jobs-beside.ts";
import { median, type Result } from "./report.ts";
import { interleaved } from "./rounds.ts";
import { getBytes, runSql } from "./warehouse-http.ts";
import { fillWindow, mergesIdle, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const PAGE = 10_000;
const ROUNDS = { rounds: 15, warm: 2 };
const WINDOW_END = WINDOW_START + WINDOW_MICROS;
/** Positions in the window at which pages are read: start, middle, end. */
const PLACES = [0, 0.5, 0.98];

/** The URL of the page at a position, reached by the lower bound of the window. */
const pageUrl = (apiUrl: string, by: "created" | "updated", place: number): string => {
  const since = formatTimestampZ(WINDOW_START + Math.floor(WINDOW_MICROS * place));
  const to = formatTimestampZ(WINDOW_END + 4 * 86_400_000_000);
  return `${apiUrl}/v2/export/conversations?${by}_since=${since}&${by}_to=${to}&page_size=${PAGE}`;
};

export const benchPages = async (
  system: System,
  conversations: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const operator = system.stack.clickhouse.url("migrator");
  const readerUrl = system.stack.clickhouse.url("reader");
  await fillWindow(operator, { conversations, exports: 4 }, log);
  await jobsBeside(system);
  await mergesIdle(operator);
  const api = await system.service("export-api", { LOG_LEVEL: "warn" });
  const key = await system.key("bench");
  const results: Result[] = [];

  const statement = pageStatement(
    PAGED_LISTS.conversationsByCreation,
    {
      clientId: "bench",
      since: WINDOW_START + WINDOW_MICROS / 2,
      to: WINDOW_END + 4 * 86_400_000_000,
      pageSize: PAGE,
      wholeTies: false,
    },
    { bound: WINDOW_START + Math.ceil(WINDOW_MICROS * (0.5 + (1.1 * PAGE) / conversations)) },
  );
  const straight = (): Promise<unknown> =>
    runSql(readerUrl, statement.sql, {
      parameters: statement.parameters,
      settings: statement.settings,
      keep: false,
    });
  const middle = pageUrl(system.apiUrl, "created", 0.5);
  const [throughApi = Number.NaN, fromClickhouse = Number.NaN] = await interleaved(
    [() => getBytes(middle, key), straight],
    ROUNDS,
  );
  const speed = fromClickhouse / throughApi;
  results.push({
    name: "page_vs_clickhouse",
    ours: throughApi,
    peer: fromClickhouse,
    ratio: speed,
    goal: ">=0.8",
    reached: speed >= 0.8,
  });
  log(`page_vs_clickhouse: ${throughApi.toFixed(0)} ms against ${fromClickhouse.toFixed(0)} ms`);

  const created = PLACES.map((place) => () => getBytes(pageUrl(system.apiUrl, "created", place), key));
  const updated = PLACES.map((place) => () => getBytes(pageUrl(system.apiUrl, "updated", place), key));
  const times = await interleaved([...created, ...updated], ROUNDS);
  const createdTimes = times.slice(0, PLACES.length);
  const updatedTimes = times.slice(PLACES.length);
  log(`created page at start, middle, end: ${createdTimes.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  log(`updated page at start, middle, end: ${updatedTimes.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  const slowest = Math.max(...createdTimes);
  const fastest = Math.min(...createdTimes);
  results.push({
    name: "created_page_flatness",
    ours: slowest,
    peer: fastest,
    ratio: slowest / fastest,
    goal: "<=1.3",
    reached: slowest / fastest <= 1.3,
  });
  const slowestUpdated = Math.max(...updatedTimes);
  const typicalCreated = median(createdTimes);
  results.push({
    name: "updated_page_vs_created",
    ours: slowestUpdated,
    peer: typicalCreated,
    ratio: slowestUpdated / typicalCreated,
    goal: "<=3",
    reached: slowestUpdated / typicalCreated <= 3,
  });

  await api.kill("SIGTERM");
  const fresh = await system.service("export-api", { LOG_LEVEL: "warn", MAX_PAGES_PER_CLIENT: "8" });
  const idle = peakMegabytes(fresh.pid);
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 8 }, () => getBytes(middle, key)));
  }
  const peak = peakMegabytes(fresh.pid);
  results.push({
    name: "export_api_peak_mb",
    ours: peak,
    peer: idle,
    ratio: peak / idle,
    goal: "ours<300",
    reached: peak < 300,
  });
  await fresh.kill("SIGTERM");
  return results;
};
