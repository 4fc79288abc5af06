import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { peakMegabytes } from "../system/process-memory.ts";
import { formatTimestampZ } from "@conversation-export/domain";
import { costOf, inPairs } from "./pairs.ts";
import { at, pathOf, type Reading } from "./reading.ts";
import { resultOf, type Result } from "./report.ts";
import { PROMPT } from "./window-data.ts";

const PACK = fileURLToPath(new URL("../../deploy/release/pack-client.ts", import.meta.url));
const COMMAND = fileURLToPath(new URL("../../.cache/client/dist/command/main.js", import.meta.url));

/** Returns peak MB. */
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
  }, 50);
  const [code] = (await once(child, "exit")) as [number | null];
  clearInterval(timer);
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
  return peak;
};

export const benchPull = async (reading: Reading): Promise<Result[]> => {
  const { system, both } = reading;
  const key = reading.keys[PROMPT] ?? "";
  const folder = system.logFolder;
  await execute(process.execPath, [PACK, join(folder, "packed")]);
  const list = pathOf("conversations", {
    created_since: formatTimestampZ(at(0)),
    created_to: formatTimestampZ(at(1)),
  });
  const curl = (): Promise<number> =>
    execute("curl", [
      "-sSf",
      `-o${join(folder, "curl.ndjson")}`,
      `-Hauthorization: Bearer ${key}`,
      "-Haccept: application/x-ndjson",
      `${system.apiUrl}${list}`,
    ]);
  const pull = (to: string) => {
    const path = join(folder, to.replace(/^duckdb:/, ""));
    const target = to.startsWith("duckdb:") ? `duckdb:${path}` : path;
    const args = ["pull", "--to", target, "--list", "conversations", "--no-transfer-compression"];
    return (): Promise<number> => {
      for (const one of [path, `${path}.wal`]) rmSync(one, { recursive: true, force: true });
      return execute(process.execPath, [COMMAND, ...args], {
        EXPORT_API_KEY: key,
        EXPORT_API_URL: system.apiUrl,
      });
    };
  };
  const units = Math.ceil(reading.conversations / 4) / 1_000;
  const results: Result[] = [];
  for (const [name, to, pairs] of [
    ["folder", "copy", 9],
    ["duckdb", "duckdb:copy.duckdb", 5],
  ] as const) {
    const run = pull(to);
    let peak = 0;
    const measured = await inPairs(
      costOf({ processes: both, units }, async () => (peak = Math.max(peak, await run()))),
      costOf({ processes: both, units }, curl),
      { pairs, warm: 1 },
    );
    results.push(resultOf(`pull_${name}`, "ms/1000", measured, { records: units * 1_000, peak_mb: peak }));
  }
  return results;
};
