import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMap, parseAllDocuments } from "yaml";
import { CHART } from "./values-table.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const EXAMPLES = join(CHART, "examples");

export const OTHER_APIS = [
  "external-secrets.io/v1",
  "gateway.networking.k8s.io/v1",
  "kafka.strimzi.io/v1",
  "keda.sh/v1alpha1",
  "monitoring.coreos.com/v1",
] as const;

/** In .cache/bin or on the PATH; null: not installed. */
export const findProgram = (name: string): string | null => {
  const folders = [join(ROOT, ".cache/bin"), ...(process.env["PATH"] ?? "").split(delimiter)];
  const found = folders
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
  return found ?? null;
};

export type Outcome = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export const runProgram = (path: string, args: readonly string[], input = ""): Outcome => {
  const { status, stdout, stderr } = spawnSync(path, args, {
    cwd: ROOT,
    input,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    // Ignores Helm settings and plugins of the current user.
    env: { PATH: process.env["PATH"], HOME: join(ROOT, ".local/helm-home") },
  });
  return { code: status, stdout, stderr };
};

export const exampleFile = (name: string): string => join(EXAMPLES, `${name}.yaml`);

export const renderChart = (
  helm: string,
  example: string,
  options: {
    readonly set?: Readonly<Record<string, unknown>>;
    readonly apis?: readonly string[];
    readonly kubeVersion?: string;
    readonly release?: string;
  } = {},
): Outcome => {
  const { set = {}, apis = OTHER_APIS, kubeVersion = "1.34.0", release = "demo" } = options;
  return runProgram(helm, [
    "template",
    release,
    CHART,
    "--namespace=export",
    `--values=${exampleFile(example)}`,
    `--kube-version=${kubeVersion}`,
    ...apis.flatMap((api) => ["--api-versions", api]),
    ...Object.entries(set).flatMap(([path, value]) => ["--set-json", `${path}=${JSON.stringify(value)}`]),
  ]);
};

type HttpProbe = {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly terminationGracePeriodSeconds?: number;
};
type Resources = { readonly cpu: string; readonly memory: string };
type KeyFiles = { readonly items?: readonly { readonly key: string; readonly path: string }[] };

export type Container = {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
  }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: HttpProbe;
  readonly livenessProbe?: HttpProbe;
  readonly readinessProbe?: HttpProbe;
  readonly securityContext: unknown;
  readonly resources: { readonly requests: Resources; readonly limits: { readonly memory: string } };
};

export type PodSpec = {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly activeDeadlineSeconds?: number;
  readonly securityContext: unknown;
  readonly containers: readonly Container[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly secret?: KeyFiles & { readonly secretName: string };
    readonly configMap?: KeyFiles & { readonly name: string };
  }[];
};

type Template = { readonly template?: { readonly spec: PodSpec } };

export type Manifest = {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: Template & {
    readonly replicas?: number;
    readonly activeDeadlineSeconds?: number;
    readonly jobTemplate?: { readonly spec: Template };
    readonly groups?: readonly unknown[];
    readonly containers?: readonly Container[];
  };
};

/** undefined: no workload. */
export const podOf = ({ kind, spec }: Manifest): PodSpec | undefined =>
  kind === "Pod" ? (spec as unknown as PodSpec) : (spec?.template ?? spec?.jobTemplate?.spec.template)?.spec;

export const readManifests = (render: string): Manifest[] =>
  parseAllDocuments(render).flatMap((document) =>
    "contents" in document && isMap(document.contents) ? [document.toJSON() as Manifest] : [],
  );
