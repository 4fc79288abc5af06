import { setTimeout as sleep } from "node:timers/promises";
import { join } from "node:path";
import { startJobMetrics } from "../outside/kube-state-metrics.ts";
import { type Alert, type ScrapeTarget, startPrometheus } from "../outside/prometheus.ts";
import { proxyApi } from "./local-port.ts";
import type { Pod, Release } from "./release.ts";
import { ROOT } from "./settings.ts";

/** The default of the chart's ServiceMonitor. */
export const INTERVAL_SECONDS = 15;
const LOOK_MS = 3_000;
const FAILED_LOOKS = 10;
const METRICS_PORT = 9090;
const RULES = join(ROOT, "deploy/charts/conversation-export/files/alerts/*.yaml");

/** ms since the epoch; null: it still fires. */
export type Firing = {
  readonly alert: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly from: number;
  readonly to: number | null;
};

export type AlertMonitor = {
  /** Each alert's last firing. @throws the error that ended the watch */
  firings(): readonly Firing[];
  stop(): Promise<void>;
};

/** Through the Kubernetes API, since this machine may not reach pods. */
const targetOf = ({ metadata }: Pod, namespace: string, address: string): ScrapeTarget => ({
  job: `conversation-export-${metadata.labels["app.kubernetes.io/component"] ?? ""}`,
  address,
  path: `/api/v1/namespaces/${namespace}/pods/${metadata.name}:${METRICS_PORT}/proxy/metrics`,
  namespace,
  pod: metadata.name,
});

export const noteFirings = (seen: Map<string, Firing>, alerts: readonly Alert[], now: number): void => {
  const firing = new Map(
    alerts.filter(({ state }) => state === "firing").map(({ labels }) => [JSON.stringify(labels), labels]),
  );
  for (const [key, labels] of firing) {
    const alert = labels["alertname"] ?? "";
    if (seen.get(key)?.to !== null) seen.set(key, { alert, labels, from: now, to: null });
  }
  for (const [key, one] of seen) if (one.to === null && !firing.has(key)) seen.set(key, { ...one, to: now });
};

export type Watchers = {
  readonly prometheus: string;
  /** Without it Jobs are not watched. */
  readonly stateMetrics: string | undefined;
};

export const monitorAlerts = async (release: Release, programs: Watchers): Promise<AlertMonitor> => {
  const { namespace } = release;
  const started: { stop(): Promise<void> }[] = [];
  const stopAll = async (): Promise<void> => {
    await Promise.allSettled(started.splice(0).map((one) => one.stop()));
  };
  const start = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    try {
      const one = await starting;
      started.push(one);
      return one;
    } catch (error) {
      await stopAll();
      throw error;
    }
  };
  const api = await start(proxyApi());
  const address = `127.0.0.1:${api.port}`;
  const { prometheus: program, stateMetrics } = programs;
  const jobs = stateMetrics && (await start(startJobMetrics(stateMetrics, { api: address, namespace })));
  const prometheus = await start(
    startPrometheus(program, { targets: [], interval: INTERVAL_SECONDS, rules: RULES }),
  );
  let isStopped = false;
  let failure: Error | null = null;
  const seen = new Map<string, Firing>();

  const look = async (): Promise<void> => {
    const pods = await release.allPods();
    const placed = pods.filter(({ status }) => status.podIP !== undefined);
    const targets = placed.map((pod) => targetOf(pod, namespace, address));
    await prometheus.setTargets(jobs ? [...targets, jobs.target] : targets);
    noteFirings(seen, await prometheus.alerts(), Date.now());
  };
  const looking = (async (): Promise<void> => {
    for (let failed = 0; !isStopped; await sleep(LOOK_MS)) {
      try {
        if (!api.isServing()) throw new Error("kubectl proxy has ended");
        if (jobs && !jobs.isServing()) throw new Error("kube-state-metrics has ended");
        await look();
        failed = 0;
      } catch (error) {
        failed += 1;
        if (failed === FAILED_LOOKS) throw error;
      }
    }
  })();
  looking.catch((error: unknown) => {
    failure = error instanceof Error ? error : new Error(String(error));
  });

  return {
    firings: () => {
      if (failure !== null) throw failure;
      return [...seen.values()];
    },
    stop: async () => {
      isStopped = true;
      try {
        await looking;
      } finally {
        await stopAll();
      }
    },
  };
};
