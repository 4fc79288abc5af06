import { formatTimestampZ } from "@conversation-export/domain";
import { createSample } from "../sample/index.ts";
import type { System } from "../system/system.ts";
import { drain, open } from "./answers.ts";
import { fillBus, idleServer, measureIngest, PLAIN_SAMPLE, STORED, truncate } from "./ingest.ts";
import { processorMs } from "./processor-time.ts";
import { runSql } from "./warehouse-http.ts";
import { mergesIdle } from "./window-data.ts";

type Figure = { readonly name: string; readonly value: number; readonly unit: string };

export const figureLine = ({ name, value, unit }: Figure): string =>
  `name=${name} value=${value >= 100 ? value.toFixed(0) : value.toFixed(2)} unit=${unit}`;

const MESSAGES_EACH = 4;
const EXPORTS = 2;
const PAGES = 40;
const PAGE = 10_000;

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
  await truncate(operator);
  const { node, clickhouse } = await measureIngest(
    system,
    { total, server: await idleServer(system), settle: mergesIdle },
    {},
  );
  const figures: Figure[] = [
    { name: "event_bytes", value: eventBytes, unit: "B" },
    { name: "ingest", value: node, unit: "us/event" },
    { name: "clickhouse", value: clickhouse, unit: "us/event" },
  ];
  await mergesIdle(operator);
  for (const table of STORED) {
    const { text } = await runSql(
      operator,
      `SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() AND table = '${table}'`,
    );
    figures.push({ name: `stored_${table}`, value: Number(text) / total, unit: "B/event" });
  }

  const api = await system.service("export-api", { LOG_LEVEL: "warn" });
  const headers = { authorization: `Bearer ${await system.key("acme")}` };
  const span = await runSql(
    operator,
    "SELECT toString(toUnixTimestamp64Micro(min(date_created))), toString(toUnixTimestamp64Micro(max(date_created))) FROM conversations WHERE client_id = 'acme' FORMAT TSV",
  );
  const [since = 0, to = 0] = span.text.trim().split("\t").map(Number);
  for (const by of ["created", "updated"]) {
    const url = `${system.apiUrl}/v2/export/conversations?${by}_since=${formatTimestampZ(since)}&${by}_to=${formatTimestampZ(to + 86_400_000_000)}&page_size=${PAGE}`;
    await drain(await open(url, headers));
    const pids = [api.pid, system.stack.clickhouse.pid ?? -1];
    const before = pids.map((pid) => processorMs([pid]));
    let bytes = 0;
    for (let page = 0; page < PAGES; page += 1) bytes += (await drain(await open(url, headers))).bytes;
    const [apiMs = 0, serverMs = 0] = pids.map((pid, index) => processorMs([pid]) - (before[index] ?? 0));
    figures.push(
      { name: `read_${by}_export_api`, value: apiMs / (bytes / 1e6), unit: "ms/MB" },
      { name: `read_${by}_clickhouse`, value: serverMs / (bytes / 1e6), unit: "ms/MB" },
    );
  }
  return figures;
};
