import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnTied } from "@conversation-export/local-stack";
import { until } from "./until.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type ServiceName = "ingest" | "export-api" | "jobs";

export type ServiceProcess = {
  readonly pid: number;
  readonly metricsUrl: string;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  ready(): Promise<void>;
  kill(signal: NodeJS.Signals): Promise<void>;
};

/** It dies with the process that started it. */
export const startService = (
  name: ServiceName,
  options: {
    readonly env: Readonly<Record<string, string>>;
    readonly metricsPort: number;
    readonly logFile: string;
  },
): ServiceProcess => {
  mkdirSync(dirname(options.logFile), { recursive: true });
  const child = spawnTied({
    command: [process.execPath, join(ROOT, "services", name, "src/main.ts")],
    cwd: ROOT,
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: join(ROOT, ".cache/compile"),
      HOST: "127.0.0.1",
      METRICS_PORT: String(options.metricsPort),
      ...options.env,
    },
    logPath: options.logFile,
  });
  const exited = once(child, "exit").then(([code, signal]: unknown[]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  const metricsUrl = `http://127.0.0.1:${options.metricsPort}`;
  return {
    pid: child.pid ?? -1,
    metricsUrl,
    exited,
    ready: () =>
      until(`${name} is ready (log: ${options.logFile})`, 60_000, async () => {
        if (child.exitCode !== null)
          throw new Error(`${name} ended with ${child.exitCode}, see ${options.logFile}`);
        const response = await fetch(`${metricsUrl}/ready`).catch(() => null);
        return response?.ok === true;
      }),
    kill: async (signal) => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await exited;
    },
  };
};
