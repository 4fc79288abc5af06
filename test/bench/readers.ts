import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@conversation-export/client";
import { peakMegabytes } from "../system/process-memory.ts";
import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { median, type Result } from "./report.ts";
import { timed } from "./rounds.ts";
import { benchParquet } from "./whole-window.ts";
import { fillWindow, mergesIdle, WINDOW_END, WINDOW_START } from "./window-data.ts";

const PACK = fileURLToPath(new URL("../../deploy/release/pack-client.ts", import.meta.url));
/** Where that builds what is published. */
const COMMAND = fileURLToPath(new URL("../../.cache/client/dist/command/main.js", import.meta.url));
const CLIENT = "bench";
const ROUNDS = 3;
const instant = (micros: number): string => new Date(micros / 1_000).toISOString();
const WHOLE = `created_since=${instant(WINDOW_START)}&created_to=${instant(WINDOW_END)}`;

/** Runs a program to its end. @returns its peak memory in MB */
const execute = async (
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number> => {
  const child = spawn(program, args, {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  let peak = 0;
  const timer = setInterval(() => {
    try {
      peak = peakMegabytes(child.pid ?? -1) || peak;
    } catch {
      // It has just ended.
    }
  }, 20);
  const [code] = (await once(child, "exit")) as [number | null];
  clearInterval(timer);
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
  return peak;
};

/** Waits until what was written before is on the disk. */
const diskIdle = (): Promise<number> => execute("sync", []);

const ready = async (apiUrl: string, key: string): Promise<void> => {
  const client = createClient({ baseUrl: apiUrl, apiKey: key });
  await until("there is a watermark", 120_000, async () => {
    const page = await client.changes("conversations", { pageSize: 1 }).next();
    return page.done !== true && page.value.watermark !== null;
  });
};

const below = (name: string, ours: number, peer: number, most: number): Result => {
  const ratio = ours / peer;
  return { name, ours, peer, ratio, goal: `<=${most}`, reached: ratio <= most };
};

/**
 * Copies of a list by the client's command, beside `curl` that writes the same stream into a file; the list as
 * Parquet beside ClickHouse's own.
 */
export const benchReaders = async (
  system: System,
  conversations: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const url = system.stack.clickhouse.url("migrator");
  const key = await system.key(CLIENT);
  await execute(process.execPath, [PACK, join(system.logFolder, "packed")]);
  await fillWindow(url, { client: CLIENT, conversations, exports: 2, byUpdate: false }, log);
  await mergesIdle(url);
  const api = await system.service("export-api", { LOG_LEVEL: "warn" });
  await Promise.all([system.service("ingest"), system.service("jobs")]);
  await ready(system.apiUrl, key);

  const file = join(system.logFolder, "curl.ndjson");
  const curl = (): Promise<number> =>
    execute("curl", [
      "-sSf",
      "-o",
      file,
      "-H",
      `authorization: Bearer ${key}`,
      "-H",
      "accept: application/x-ndjson",
      `${system.apiUrl}/v2/export/conversations?${WHOLE}`,
    ]);
  const pull =
    (to: string, ...more: string[]) =>
    async (): Promise<number> => {
      const path = to.replace(/^duckdb:/, "");
      for (const one of [path, `${path}.wal`]) rmSync(one, { recursive: true, force: true });
      const args = [
        COMMAND,
        "pull",
        "--to",
        to,
        "--list",
        "conversations",
        "--no-transfer-compression",
        ...more,
      ];
      return execute(process.execPath, args, { EXPORT_API_KEY: key, EXPORT_API_URL: system.apiUrl });
    };
  const ways = [
    ["plain", pull(join(system.logFolder, "plain"))],
    ["zst", pull(join(system.logFolder, "zst"), "--compress", "zst")],
    ["gz", pull(join(system.logFolder, "gz"), "--compress", "gz")],
    ["duckdb", pull(`duckdb:${join(system.logFolder, "copy.duckdb")}`)],
  ] as const;
  const peers: number[] = [];
  const times = new Map<string, number[]>(ways.map(([name]) => [name, []]));
  const peaks = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    await diskIdle();
    peers.push(await timed(curl));
    for (const [name, way] of ways) {
      let peak = 0;
      await diskIdle();
      times.get(name)?.push(await timed(async () => (peak = await way())));
      peaks.set(name, Math.max(peak, peaks.get(name) ?? 0));
    }
    const each = ways.map(([name]) => `${name} ${times.get(name)?.at(-1)?.toFixed(0)} ms`).join(", ");
    log(`curl ${peers.at(-1)?.toFixed(0)} ms for ${(statSync(file).size / 1e6).toFixed(0)} MB, ${each}`);
  }
  await diskIdle();
  const parquet = await benchParquet(
    system,
    { apiUrl: system.apiUrl, pid: api.pid, key },
    conversations,
    log,
  );
  const copies = ways.flatMap(([name]): Result[] => {
    const peak = peaks.get(name) ?? Number.NaN;
    return [
      below(`pull_vs_curl_${name}`, median(times.get(name) ?? []), median(peers), 1.5),
      {
        name: `pull_peak_mb_${name}`,
        ours: peak,
        peer: 200,
        ratio: peak / 200,
        goal: "ours<200",
        reached: peak < 200,
      },
    ];
  });
  return [...copies, ...parquet];
};
