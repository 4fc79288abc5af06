import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts } from "@conversation-export/local-stack";
import { type ServedProgram, startServedProgram } from "./served-program.ts";

export type ScrapeTarget = {
  readonly job: string;
  readonly address: string;
  /** Default: /metrics. */
  readonly path?: string;
  readonly namespace: string;
  readonly pod: string;
};

export type Alert = {
  readonly state: "pending" | "firing";
  readonly labels: Readonly<Record<string, string>>;
};

export type Prometheus = {
  setTargets(targets: readonly ScrapeTarget[]): Promise<void>;
  alerts(): Promise<readonly Alert[]>;
  stop(): Promise<void>;
};

const configOf = (targets: string, rules: string | undefined, interval: number): string =>
  JSON.stringify({
    global: { scrape_interval: `${interval}s`, evaluation_interval: `${interval}s` },
    ...(rules !== undefined && { rule_files: [rules] }),
    scrape_configs: [
      {
        job_name: "targets",
        // kube-state-metrics names the namespace of its series itself.
        honor_labels: true,
        file_sd_configs: [{ files: [targets], refresh_interval: `${interval}s` }],
      },
    ],
  });

const targetsText = (targets: readonly ScrapeTarget[]): string =>
  JSON.stringify(
    targets.map(({ job, address, path = "/metrics", namespace, pod }) => ({
      targets: [address],
      labels: { job, namespace, pod, __metrics_path__: path },
    })),
  );

/** `interval` in seconds; `rules` is a glob. */
export const startPrometheus = async (
  program: string,
  options: {
    readonly targets: readonly ScrapeTarget[];
    readonly interval: number;
    readonly rules?: string;
  },
): Promise<Prometheus> => {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  const { port } = await choosePorts({ names: ["port"], fixed: {} });
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, "prometheus.yml");
  const targetsFile = join(folder, "targets.json");
  const setTargets = (targets: readonly ScrapeTarget[]): Promise<void> => {
    // Renamed, so that it is never read in part.
    const next = `${targetsFile}.next`;
    return writeFile(next, targetsText(targets)).then(() => rename(next, targetsFile));
  };
  // JSON is YAML.
  await writeFile(config, configOf(targetsFile, options.rules, options.interval));
  await setTargets(options.targets);
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--log.level=error",
  ];
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  let served: ServedProgram;
  try {
    served = await startServedProgram(program, args, `${url}/-/ready`);
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    setTargets,
    alerts: async () => {
      const answer = await (await fetch(`${url}/api/v1/alerts`)).json();
      return (answer as { readonly data: { readonly alerts: readonly Alert[] } }).data.alerts;
    },
    stop: async () => {
      await served.stop();
      await remove();
    },
  };
};
