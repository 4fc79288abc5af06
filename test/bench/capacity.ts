import { formatTimestampZ } from "@conversation-export/domain";
import { readMetric } from "../system/metrics-text.ts";
import type { System } from "../system/system.ts";
import { createSample } from "../sample/index.ts";
import { fillBus, PLAIN_SAMPLE, runIngest, serverSeconds, STORED } from "./ingest-run.ts";
import { getBytes, runSql } from "./warehouse-http.ts";
import { mergesIdle } from "./window-data.ts";

/** The cost of one event or one megabyte, for sizing larger installations. */
export type Figure = { readonly name: string; readonly value: number; readonly unit: string };

/** `name=… value=… unit=…` */
export const figureLine = ({ name, value, unit }: Figure): string =>
  `name=${name} value=${value >= 100 ? value.toFixed(0) : value.toFixed(2)} unit=${unit}`;

const MESSAGES_EACH = 4;
const EXPORTS = 2;
const PAGES = 40;
const PAGE = 10_000;

const storedBytes = async (url: string, table: string): Promise<number> => {
  const sql = `SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() AND table = '${table}'`;
  return Number((await runSql(url, sql)).text);
};

/** Measures what an event costs each server and the disk, and what reading a megabyte costs. */
export const measureCapacity = async (
  system: System,
  events: number,
  log: (line: string) => void,
): Promise<Figure[]> => {
  const operator = system.stack.clickhouse.url("migrator");
  const sample = createSample({
    ...PLAIN_SAMPLE,
    conversations: Math.ceil(events / (EXPORTS + MESSAGES_EACH)),
    messagesPerConversation: MESSAGES_EACH,
    exportsPerConversation: EXPORTS,
  });
  const { total, eventBytes } = await fillBus(system, sample, log);

  const figures: Figure[] = [{ name: "event_bytes", value: eventBytes, unit: "B" }];
  const perEvent = (name: string, seconds: number): void => {
    figures.push({ name, value: (seconds / total) * 1e6, unit: "us/event" });
  };
  // The first run fills caches.
  await runIngest(system, total, { KAFKA_GROUP_ID: "capacity-warm" });
  const beforeAll = await serverSeconds(operator);
  const { rate, ingest, server } = await runIngest(system, total, {
    KAFKA_GROUP_ID: "capacity-measured",
  });
  await mergesIdle(operator);
  const merges = (await serverSeconds(operator)) - beforeAll - server;
  figures.push({ name: "ingest_rate", value: rate, unit: "events/s" });
  perEvent("ingest_cpu", ingest);
  perEvent("clickhouse_cpu_insert", server);
  perEvent("clickhouse_cpu_merges_after", merges);
  for (const table of STORED) {
    figures.push({
      name: `stored_${table}`,
      value: (await storedBytes(operator, table)) / total,
      unit: "B/event",
    });
  }

  const api = await system.service("export-api", { LOG_LEVEL: "warn" });
  const key = await system.key("acme");
  const span = await runSql(
    operator,
    "SELECT toString(toUnixTimestamp64Micro(min(date_created))), toString(toUnixTimestamp64Micro(max(date_created))) FROM conversations WHERE client_id = 'acme' FORMAT TSV",
  );
  const [since = 0, to = 0] = span.text.trim().split("\t").map(Number);
  const window = (by: string): string =>
    `${system.apiUrl}/v2/export/conversations?${by}_since=${formatTimestampZ(since)}&${by}_to=${formatTimestampZ(to + 86_400_000_000)}&page_size=${PAGE}`;
  for (const by of ["created", "updated"]) {
    let read = 0;
    await getBytes(window(by), key);
    const serverBefore = await serverSeconds(operator);
    const apiBefore = (await readMetric(api.metricsUrl, "process_cpu_seconds_total")) ?? 0;
    const began = performance.now();
    for (let page = 0; page < PAGES; page += 1) read += (await getBytes(window(by), key)).bytes;
    const seconds = (performance.now() - began) / 1000;
    const megabytes = read / 1e6;
    const apiSeconds = ((await readMetric(api.metricsUrl, "process_cpu_seconds_total")) ?? 0) - apiBefore;
    const serverUsed = (await serverSeconds(operator)) - serverBefore;
    figures.push(
      { name: `read_${by}_rate`, value: megabytes / seconds, unit: "MB/s" },
      { name: `read_${by}_api_cpu`, value: (apiSeconds / megabytes) * 1e3, unit: "ms/MB" },
      { name: `read_${by}_clickhouse_cpu`, value: (serverUsed / megabytes) * 1e3, unit: "ms/MB" },
    );
  }
  await api.kill("SIGTERM");
  return figures;
};
