import { createClient } from "@conversation-export/client";
import { formatTimestampZ } from "@conversation-export/domain";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { drain, open } from "./answers.ts";
import { type Processes, watchIdle } from "./processor-time.ts";
import { runSql } from "./warehouse-http.ts";
import { fillMeasured, LATE, mergesIdle, PROMPT, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

export type Reading = {
  readonly system: System;
  readonly conversations: number;
  /** `both`: with export-api. */
  readonly server: Processes;
  readonly both: Processes;
  readonly keys: Readonly<Record<string, string>>;
};

/** In µs. */
export const at = (place: number): number => WINDOW_START + Math.floor(WINDOW_MICROS * place);

export const pathOf = (list: string, query: Readonly<Record<string, string | number>>): string =>
  `/v2/export/${list}?${Object.entries(query)
    .map(([name, value]) => `${name}=${value}`)
    .join("&")}`;

export const pagePath = (by: "created" | "updated", since: number, pageSize: number): string =>
  pathOf("conversations", {
    [`${by}_since`]: formatTimestampZ(since),
    [`${by}_to`]: formatTimestampZ(at(2)),
    page_size: pageSize,
  });

export const openPath = (
  { system, keys }: Pick<Reading, "system" | "keys">,
  client: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ReturnType<typeof open> =>
  open(`${system.apiUrl}${path}`, { authorization: `Bearer ${keys[client]}`, ...headers });

export const get = async (reading: Pick<Reading, "system" | "keys">, client: string, path: string) =>
  drain(await openPath(reading, client, path));

/** A busy machine must not reject readers. */
const API = { LOG_LEVEL: "warn", MAX_EVENT_LOOP_DELAY_MS: "0" };

export const startReading = async (
  system: System,
  conversations: number,
  log: (line: string) => void,
): Promise<Reading> => {
  const operator = system.stack.clickhouse.url("migrator");
  await fillMeasured(operator, conversations);
  log(`${conversations} conversations are in the warehouse`);
  await mergesIdle(operator);
  const keys = { [LATE]: await system.key(LATE), [PROMPT]: await system.key(PROMPT) };
  const api = await system.service("export-api", API);
  await system.service("ingest", { LOG_LEVEL: "warn", LAG_INTERVAL_MS: "5000" });
  await system.service("jobs", { LOG_LEVEL: "warn", ...NO_SCHEDULES });
  await until("moved records are known", 300_000, async () => {
    const noted = "SELECT count() FROM watermarks WHERE list = 'changes with dates known'";
    return Number((await runSql(operator, noted)).text) > 0;
  });
  const client = createClient({ baseUrl: system.apiUrl, apiKey: keys[PROMPT] ?? "" });
  await until("there is a watermark", 120_000, async () => {
    const page = await client.changes("conversations", { pageSize: 1 }).next();
    return page.done !== true && page.value.watermark !== null;
  });
  const pid = system.stack.clickhouse.pid;
  if (pid === undefined) throw new Error("ClickHouse is down");
  const [server, both] = await Promise.all([watchIdle([pid]), watchIdle([pid, api.pid])]);
  log(
    `idle, ClickHouse takes ${(server.idle * 100).toFixed(1)} % of a core, with export-api ${(both.idle * 100).toFixed(1)} %`,
  );
  return { system, conversations, server, both, keys };
};
