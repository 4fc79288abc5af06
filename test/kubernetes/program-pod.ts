import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Cluster } from "./cluster.ts";
import { until } from "../system/until.ts";
import { ROOT } from "./settings.ts";

/** Where a pod finds the program `name`. Node takes it for a module by its ending. */
export const programPath = (name: string): string => `/program/${name}.mts`;

/** What a pod of this test is in addition to the image's Node and a program of the folder `programs`. */
export type ProgramPod = {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  /** Names of programs; the pod sees them as files. */
  readonly programs: readonly string[];
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** More of the pod's spec. */
  readonly spec?: object;
  readonly securityContext: object;
};

/** Makes the pod with its programs and waits until it runs. */
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
        // A program that ends is missed; one that began anew would count from 0.
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
