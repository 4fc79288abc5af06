import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "./cluster.ts";
import { exampleFile } from "../chart/helm.ts";
import { CHART } from "../chart/values-table.ts";
import { until } from "../system/until.ts";
import { guideBlocks, OPS_FUNCTION } from "./guide.ts";
import { type Image, ROOT } from "./settings.ts";
import { runScript } from "./shell.ts";

export const RELEASE = "export";
export const SERVICES = ["ingest", "export-api", "jobs"] as const;
export type ServiceName = (typeof SERVICES)[number];
const PREFIX = `${RELEASE}-conversation-export`;
const INSTANCE = `app.kubernetes.io/instance=${RELEASE}`;
const OF_SERVICES = `${INSTANCE},app.kubernetes.io/component in (${SERVICES.join()})`;

export type Pod = {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
  };
};
type Deployment = {
  readonly metadata: { readonly generation: number };
  readonly spec: { readonly replicas: number };
  readonly status: Readonly<
    Partial<Record<"observedGeneration" | "replicas" | "updatedReplicas" | "readyReplicas", number>>
  >;
};

export const isReady = ({ status }: Pod): boolean =>
  (status.conditions ?? []).some((one) => one.type === "Ready" && one.status === "True");

export type Release = {
  readonly namespace: string;
  /** `block`: its number below "Install with Helm". */
  guide(block: number, env?: Readonly<Record<string, string>>): Promise<string>;
  upgrade(set: Readonly<Record<string, string>>, ...options: string[]): Promise<void>;
  helm(...args: string[]): Promise<string>;
  ops(...args: string[]): Promise<string>;
  runbook(command: string): Promise<string>;
  /** Without those being deleted. */
  pods(service: ServiceName): Promise<Pod[]>;
  /** Without those of hooks. */
  allPods(): Promise<Pod[]>;
  ready(deadlineMs?: number): Promise<void>;
  /** `from` in ms since the epoch. */
  logs(from: number): Promise<string[]>;
};

export const createRelease = (
  cluster: Cluster,
  deps: {
    readonly namespace: string;
    readonly folder: string;
    readonly image: Image;
    readonly values: object;
  },
): Release => {
  const { namespace, folder, image, values } = deps;
  const inNamespace = ["--namespace", namespace];
  const cwd = join(folder, "guide");
  mkdirSync(cwd, { recursive: true });
  symlinkSync(join(ROOT, "deploy"), join(cwd, "deploy"));
  const more = join(folder, "more-values.json");
  const of = { image: { repository: image.repository, tag: image.tag } };
  writeFileSync(more, JSON.stringify({ ...values, ...of }));
  const blocks = guideBlocks("Install with Helm", { namespace, registry: image.registry });
  const chart = [RELEASE, CHART, ...inNamespace, `--values=${exampleFile("minimal")}`, `--values=${more}`];

  const pods = async (selector: string): Promise<Pod[]> =>
    (await cluster.list<Pod>(namespace, "pods", selector)).filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    );
  const isRolledOut = ({ metadata, spec, status }: Deployment): boolean =>
    status.observedGeneration === metadata.generation &&
    [status.replicas, status.updatedReplicas, status.readyReplicas].every(
      (count) => (count ?? 0) === spec.replicas,
    );

  const allPods = (): Promise<Pod[]> => cluster.list<Pod>(namespace, "pods", OF_SERVICES);
  // Deployments learn of their pods a moment later.
  const isComplete = async (): Promise<boolean> => {
    const found = await cluster.list<Deployment>(namespace, "deployments", INSTANCE);
    if (found.length !== SERVICES.length || !found.every(isRolledOut)) return false;
    const wanted = found.reduce((sum, { spec }) => sum + spec.replicas, 0);
    const present = await pods(OF_SERVICES);
    return present.length === wanted && present.every(isReady);
  };

  const asOperator = async (script: string, args: readonly string[]): Promise<string> => {
    const notes = await cluster.helm(["get", "notes", RELEASE, ...inNamespace]);
    const lines = OPS_FUNCTION.exec(notes)?.[0];
    if (lines === undefined) throw new Error("the notes have no function ops");
    return runScript(`${lines}\n${script}`, { cwd, args, env: { OPERATOR: "test" } });
  };

  return {
    namespace,
    guide: (block, env = {}) => {
      const withMore = `helm() { case $1 in install|upgrade) command helm "$@" --values "$MORE";; *) command helm "$@";; esac; }`;
      const script = `${withMore}\n${blocks[block] ?? "false"}`;
      return runScript(script, { cwd, env: { ...env, MORE: more } });
    },
    upgrade: async (set, ...options) => {
      const given = Object.entries(set).map(([path, value]) => `--set-json=${path}=${value}`);
      const args = ["upgrade", ...chart, `--set=image.registry=${image.registry}`, ...given];
      await cluster.helm([...args, "--wait", "--timeout=5m", ...options]);
    },
    helm: (...args) => cluster.helm([...args, ...inNamespace]),
    ops: (...args) => asOperator('ops "$@"', args),
    runbook: (command) => asOperator(`export NS=${namespace}\nexport-ops() { ops "$@"; }\n${command}`, []),
    pods: (service) => pods(`${INSTANCE},app.kubernetes.io/component=${service}`),
    allPods,
    ready: (deadlineMs = 180_000) => until("all pods are ready", deadlineMs, isComplete, 500),
    logs: async (from) => {
      const since = `--since-time=${new Date(from).toISOString()}`;
      const all = ["--tail=-1", "--max-log-requests=20", "--ignore-errors"];
      const args = ["logs", ...inNamespace, `--selector=${OF_SERVICES}`, since, ...all];
      // kubectl writes there that a container has no log yet.
      return (await cluster.kubectl(args)).split("\n").filter((line) => !/^(?:error: .*)?$/.test(line));
    },
  };
};

export const nameOf = (component: string): string => `${PREFIX}-${component}`;
