import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts } from "@conversation-export/local-stack";
import { until } from "../../system/until.ts";
import type { TimeRange } from "../fill-sql.ts";

/** A process to scrape, with the labels that the rules and dashboards need. */
export type ScrapeTarget = {
  readonly job: string;
  readonly address: string;
  readonly namespace: string;
  readonly pod: string;
};

/** A series as Prometheus answers it; values are texts. */
export type Matrix = readonly {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [seconds: number, value: string])[];
}[];

export type Prometheus = {
  query(expr: string, range: TimeRange, step: number): Promise<Matrix>;
  stop(): Promise<void>;
};

const configOf = (targets: readonly ScrapeTarget[], interval: number): string =>
  JSON.stringify({
    global: { scrape_interval: `${interval}s` },
    scrape_configs: targets.map(({ job, address, namespace, pod }) => ({
      job_name: job,
      static_configs: [{ targets: [address], labels: { namespace, pod } }],
    })),
  });

const stopProcess = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
};

/** Starts a Prometheus that scrapes the targets every `interval` seconds, in a folder that `stop` removes. */
export const startPrometheus = async (
  program: string,
  targets: readonly ScrapeTarget[],
  interval: number,
): Promise<Prometheus> => {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  const { port } = await choosePorts({ names: ["port"], fixed: {} });
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, "prometheus.yml");
  // JSON is YAML.
  await writeFile(config, configOf(targets, interval));
  const child = spawn(
    program,
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  const stop = async (): Promise<void> => {
    await stopProcess(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await Promise.race([
      until("Prometheus answers", 15_000, async () =>
        fetch(`${url}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      ),
      once(child, "error").then(([error]) => Promise.reject(error as Error)),
    ]);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    query: async (expr, { from, to }, step) => {
      const body = new URLSearchParams({
        query: expr,
        start: String(from / 1_000),
        end: String(to / 1_000),
        step: String(step),
      });
      const response = await fetch(`${url}/api/v1/query_range`, { method: "POST", body });
      const answer = (await response.json()) as {
        readonly error?: string;
        readonly data?: { readonly result: Matrix };
      };
      if (answer.data === undefined) throw new Error(`Prometheus: ${answer.error} in ${expr}`);
      return answer.data.result;
    },
    stop,
  };
};
