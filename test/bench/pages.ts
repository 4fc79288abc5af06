import { formatTimestampZ } from "@conversation-export/domain";
import type { System } from "../system/system.ts";
import { peakMegabytes } from "../system/process-memory.ts";
import { jobsBeside } from "./jobs-beside.ts";
import { median, type Result } from "./report.ts";
import { interleaved } from "./rounds.ts";
import { getBytes, runSql } from "./warehouse-http.ts";
import { fillWindow, mergesIdle, WINDOW_END, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const PAGE = 10_000;
const ROUNDS = { rounds: 15, warm: 2 };
/** Positions in the window at which pages are read: start, middle, and the last that has a whole page behind it. */
const placesOf = (conversations: number): number[] => [0, 0.5, 1 - (1.05 * PAGE) / conversations];

const at = (name: string): string => `fromUnixTimestamp64Micro({${name}:Int64}, 'UTC')`;
/**
 * What somebody would write who knows where the page ends: the records in order, each with its handoffs. It looks
 * neither for other dates of a record nor for hidden ones, and does not tell whether more follow.
 */
const PLAIN_PAGE = `SELECT concat(r.head, if(empty(h.entries), '[]', h.entries), r.tail)
  FROM (SELECT date_created, conversation_id, head, tail FROM conversations FINAL
    WHERE client_id = {client:String} AND date_created >= ${at("start")} AND date_created <= ${at("bound")}) AS r
  LEFT JOIN (SELECT conversation_date_created, conversation_id,
      concat('[', arrayStringConcat(groupArray(entry), ','), ']') AS entries
    FROM handoffs FINAL
    WHERE client_id = {client:String} AND notEmpty(entry)
      AND conversation_date_created >= ${at("start")} AND conversation_date_created <= ${at("bound")}
    GROUP BY conversation_date_created, conversation_id) AS h
  ON h.conversation_date_created = r.date_created AND h.conversation_id = r.conversation_id
  ORDER BY r.date_created, r.conversation_id LIMIT {size:UInt32} FORMAT CustomSeparated`;
const PLAIN_SETTINGS = {
  format_custom_escaping_rule: "Raw",
  format_custom_field_delimiter: "",
  format_custom_row_before_delimiter: "",
  format_custom_row_after_delimiter: "",
  format_custom_row_between_delimiter: ",",
  do_not_merge_across_partitions_select_final: 1,
};

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

  const start = WINDOW_START + WINDOW_MICROS / 2;
  const bound = WINDOW_START + Math.ceil(WINDOW_MICROS * (0.5 + (1.1 * PAGE) / conversations));
  const straight = (): Promise<unknown> =>
    runSql(readerUrl, PLAIN_PAGE, {
      parameters: { client: "bench", start, bound, size: PAGE },
      settings: PLAIN_SETTINGS,
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
    goal: ">=0.85",
    reached: speed >= 0.85,
  });
  log(`page_vs_clickhouse: ${throughApi.toFixed(0)} ms against ${fromClickhouse.toFixed(0)} ms`);

  const places = placesOf(conversations);
  const created = places.map((place) => () => getBytes(pageUrl(system.apiUrl, "created", place), key));
  const updated = places.map((place) => () => getBytes(pageUrl(system.apiUrl, "updated", place), key));
  const times = await interleaved([...created, ...updated], ROUNDS);
  const createdTimes = times.slice(0, places.length);
  const updatedTimes = times.slice(places.length);
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
