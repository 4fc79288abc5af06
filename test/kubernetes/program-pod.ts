import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Cluster } from "./cluster.ts";
import { until } from "../system/until.ts";
import { ROOT } from "./settings.ts";

/** The ending makes Node load it as a module. */
export const programPath = (name: string): string => `/program/${name}.mts`;

export type ProgramPod = {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  readonly programs: readonly string[];
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly spec?: object;
  readonly securityContext: object;
};

export const startProgramPod = async (cluster: Cluster, pod: ProgramPod): Promise<void> => {
  const { namespace, name, programs, env = {} } = pod;
  const files = programs.map((one) => [
    basename(programPath(one)),
    readFileSync(join(ROOT, "test/kubernetes/programs", `${one}.ts`), "utf8"),
  ]);
  const items = [
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: Object.fromEntries(files) as object },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 0,
        // A program that ends must be noticed; a restarted one would count from 0.
        restartPolicy: "Never",
        automountServiceAccountToken: false,
        ...pod.spec,
        containers: [
          {
            name,
            image: pod.image,
            imagePullPolicy: "IfNotPresent",
            command: ["node", ...pod.args],
            env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
            securityContext: pod.securityContext,
            volumeMounts: [{ name: "program", mountPath: "/program" }],
          },
        ],
        volumes: [{ name: "program", configMap: { name } }],
      },
    },
  ];
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["apply", "--namespace", namespace, "--filename=-"], list);
  const phase = () =>
    cluster.kubectl(["get", "pod", name, "--namespace", namespace, "--output=jsonpath={.status.phase}"]);
  await until(`the pod ${name} runs`, 120_000, async () => (await phase()) === "Running", 500);
};
