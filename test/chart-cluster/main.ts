import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { exampleFile, type Manifest, podOf } from "../chart/helm.ts";
import { CHART } from "../chart/values-table.ts";
import { until } from "../system/until.ts";
import { type Cluster, connectCluster, dryRun, keepFakeNodesAlive } from "./cluster.ts";
import { installCustomResources } from "./custom-resources.ts";
import { neededBy, standIns } from "./needed.ts";

// Installs, upgrades, rolls back and removes every example of the chart in the cluster of KUBECONFIG, in a
// namespace that enforces the Pod Security Standard "restricted". For nodes that run nothing (kwok): no image
// is pulled, no probe is sent, and a Job succeeds as soon as its pod is scheduled.

const RELEASE = "export";
const SELECTOR = `app.kubernetes.io/instance=${RELEASE}`;
const PREFIX = `${RELEASE}-conversation-export`;
const DEADLINE_MS = 60_000;
const CHANGED = { name: "BATCH_MAX_AGE_MS", value: "700" } as const;

type Event = {
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly kind: string; readonly name: string };
};
type Deployment = Manifest & {
  readonly metadata: { readonly generation: number };
  readonly status: { readonly replicas?: number; readonly readyReplicas?: number };
};

const namespaceOf = (example: string): string => `chart-cluster-${example}`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const step = async <T>(example: string, what: string, work: () => Promise<T>): Promise<T> => {
  const from = performance.now();
  const result = await work();
  const note = typeof result === "string" ? `: ${result}` : "";
  print(`${example}: ${what}${note} (${((performance.now() - from) / 1000).toFixed(1)} s)`);
  return result;
};

/** Checks that the namespace refuses a pod without a security context. */
const expectRestricted = async ({ kubectl }: Cluster, namespace: string): Promise<void> => {
  const args = ["run", "intruder", "--image=intruder:1", "--dry-run=server"];
  const refusal = await kubectl([...args, "--namespace", namespace]).then(
    () => "",
    (error: unknown) => String(error),
  );
  if (!refusal.includes("violates PodSecurity"))
    throw new Error(`the namespace does not enforce Pod Security: ${refusal}`);
};

/** @throws Error when events report pods that were not created or not scheduled. */
const checkEvents = async (cluster: Cluster, namespace: string): Promise<string> => {
  const events = await cluster.list<Event>(namespace, "events");
  const bad = events.filter(
    ({ reason, message }) =>
      /^(?:FailedCreate|FailedScheduling|FailedMount|BackOff|ReplicaSetCreateError)$/.test(reason) ||
      /PodSecurity|forbidden/i.test(message),
  );
  if (bad.length > 0) {
    const lines = bad.map((one) => `${one.involvedObject.kind} ${one.involvedObject.name}: ${one.message}`);
    throw new Error(`pods were refused:\n${lines.join("\n")}`);
  }
  return `${events.length} events, no pod was refused`;
};

const checkReferences = async (cluster: Cluster, namespace: string): Promise<string> => {
  const needed = neededBy(await cluster.list(namespace, "deployments,cronjobs", SELECTOR));
  const present = await cluster.list(namespace, "secrets,configmaps");
  const missing = needed.flatMap(({ kind, name, keys }) => {
    const found = present.find((one) => one.kind === kind && one.metadata.name === name);
    return [...(found === undefined ? [""] : keys)]
      .filter((key) => found === undefined || !(key in (found.data ?? {})))
      .map((key) => `${kind} ${name} ${key}`);
  });
  if (missing.length > 0) throw new Error(`pods name missing objects: ${missing.join(", ")}`);
  return `${needed.length} Secrets and ConfigMaps with all keys`;
};

const deploymentsOf = async (cluster: Cluster, namespace: string): Promise<Map<string, Deployment>> =>
  new Map(
    (await cluster.list<Deployment>(namespace, "deployments", SELECTOR)).map((one) => [
      one.metadata.name.replace(`${PREFIX}-`, ""),
      one,
    ]),
  );

/** Describes the ready replicas of each component. @throws Error when some are not ready. */
const readiness = async (cluster: Cluster, namespace: string): Promise<string> => {
  const deployments = await deploymentsOf(cluster, namespace);
  const waiting = [...deployments].filter(([, { status }]) => status.readyReplicas !== status.replicas);
  if (deployments.size !== 3 || waiting.length > 0) throw new Error("a component is not ready");
  return [...deployments].map(([name, { status }]) => `${name} ${status.readyReplicas}`).join(", ");
};

const templatesOf = async (cluster: Cluster, namespace: string): Promise<Map<string, string>> =>
  new Map(
    [...(await deploymentsOf(cluster, namespace))].map(([name, { spec }]) => [
      name,
      JSON.stringify(spec?.template),
    ]),
  );

/** The remaining objects of a release as `kind/name`, sorted. */
const leftOf = async ({ kubectl }: Cluster, namespace: string): Promise<string[]> => {
  const kinds = (await kubectl(["api-resources", "--namespaced", "--verbs=list", "--output=name"]))
    .trim()
    .split("\n")
    .filter((kind) => !/^(?:events|bindings)\b/.test(kind));
  const args = ["get", kinds.join(","), "--namespace", namespace, "--selector", SELECTOR];
  const lines = (await kubectl([...args, "--output=name", "--ignore-not-found"])).trim().split("\n");
  return lines.filter((line) => line !== "").sort();
};

/** Hook Jobs and their pods stay until their TTL ends; topics stay because they hold events. */
const mayStay = (name: string): boolean =>
  new RegExp(`^(?:job\\.batch|pod)/${PREFIX}-(?:migrate|topics)(?:-\\w+)?$`).test(name) ||
  name.startsWith("kafkatopic.kafka.strimzi.io/");

/** Calls the shell function. Nothing runs on the nodes, so there is no log to follow. */
const runNotes = async (lines: string, args: readonly string[]): Promise<void> => {
  const script = `kubectl() { case " $* " in *" logs "*) ;; *) command kubectl "$@" ;; esac; }\n${lines}\nops "$@"`;
  await promisify(execFile)("bash", ["-euc", script, "ops", ...args]);
};

const tryExample = async (cluster: Cluster, example: string): Promise<void> => {
  const { kubectl, helm } = cluster;
  const namespace = namespaceOf(example);
  const values = [RELEASE, CHART, "--namespace", namespace, `--values=${exampleFile(example)}`];
  const wait = ["--wait", "--timeout=2m"];
  const inNamespace = ["--namespace", namespace];
  const apply = (items: readonly unknown[], ...options: string[]): Promise<string> =>
    kubectl(
      ["apply", ...inNamespace, ...options, "--filename=-"],
      JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    );
  const hookIds = async (): Promise<string> =>
    (await kubectl(["get", "jobs", ...inNamespace, "--output=jsonpath={.items[*].metadata.uid}"])).trim();

  await kubectl(["delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s"]);
  await kubectl(["create", "namespace", namespace]);
  await kubectl(["label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted"]);
  await expectRestricted(cluster, namespace);

  const { objects, hooks } = await step(example, "upgrade --install --dry-run=server", () =>
    dryRun(cluster, values),
  );
  const all = [...objects, ...hooks];
  await step(example, "Secrets and ConfigMaps of others", async () => {
    const made = standIns(neededBy(all), all);
    if (made.length > 0) await apply(made);
    return String(made.length);
  });
  await step(example, "install --wait", async () => {
    await helm(["install", ...values, ...wait]);
    return readiness(cluster, namespace);
  });
  await step(example, "pods of helm test, dry run", async () => {
    const pods = hooks.filter(({ kind }) => kind === "Pod");
    if (pods.length !== 2) throw new Error(`${pods.length} pods of helm test`);
    await apply(pods, "--dry-run=server");
  });
  await step(example, "what pods name", () => checkReferences(cluster, namespace));
  await step(example, "a command of export-ops with the function of the notes", async () => {
    const notes = await helm(["get", "notes", RELEASE, ...inNamespace]);
    const lines = /^ {3}ops\(\) \{\n[\s\S]*?^ {3}\}\n/m.exec(notes)?.[0];
    if (lines === undefined) throw new Error("the notes have no function ops");
    await runNotes(lines, ["erase", '--reason=a "b" \\ c']);
    const jobs = (await cluster.list(namespace, "jobs")).filter(({ metadata }) =>
      metadata.name.startsWith("ops-"),
    );
    const args = jobs.flatMap((job) => podOf(job)?.containers[0]?.args ?? []).slice(-3);
    if (args.join("|") !== 'services/ops/src/main.ts|erase|--reason=a "b" \\ c')
      throw new Error(`the Job got ${args.join(" ")}`);
    const ofOps = "app.kubernetes.io/component=ops";
    if ((await cluster.list(namespace, "jobs", ofOps)).length !== 1)
      throw new Error(`no Job with the label ${ofOps}`);
    await kubectl(["delete", "jobs", ...inNamespace, `--selector=${ofOps}`]);
  });

  const before = await templatesOf(cluster, namespace);
  const hooksBefore = await hookIds();
  await step(example, `upgrade --wait with another ${CHANGED.name}`, async () => {
    await helm([
      "upgrade",
      ...values,
      ...wait,
      `--set-string=ingest.config.${CHANGED.name}=${CHANGED.value}`,
    ]);
    const after = await templatesOf(cluster, namespace);
    const changed = [...after].filter(([name, template]) => before.get(name) !== template);
    const names = changed.map(([name]) => name).join(", ");
    if (names !== "ingest") throw new Error(`recreated pods: ${names}, expected only those of ingest`);
    if (hooksBefore !== "" && (await hookIds()) === hooksBefore) throw new Error("no migration ran");
    return `new pods of ingest alone; ${await readiness(cluster, namespace)}`;
  });
  await step(example, "rollback 1 --wait", async () => {
    await helm(["rollback", RELEASE, "1", ...inNamespace, ...wait]);
    const after = await templatesOf(cluster, namespace);
    for (const [name, template] of after)
      if (before.get(name) !== template) throw new Error(`the rollback did not restore ${name}`);
    return readiness(cluster, namespace);
  });
  await step(example, "events", () => checkEvents(cluster, namespace));
  await step(example, "upgrade whose migration fails", async () => {
    // No node has the label, so the Job has no pod when its deadline ends.
    const failing = "--set=migrations.activeDeadlineSeconds=3,ops.nodeSelector.nowhere=here";
    const refusal = await helm(["upgrade", ...values, ...wait, failing]).then(
      () => "",
      (error: unknown) => String(error),
    );
    if (!refusal.includes("pre-upgrade hooks failed"))
      throw new Error(`the upgrade was not refused: ${refusal}`);
    const after = await templatesOf(cluster, namespace);
    for (const [name, template] of after)
      if (before.get(name) !== template) throw new Error(`${name} was changed by the refused upgrade`);
    return "refused, no pod template changed";
  });

  const uninstall = (): Promise<string> =>
    step(example, "uninstall --wait", async () => {
      await helm(["uninstall", RELEASE, ...inNamespace, ...wait]);
      let left: string[] = [];
      const isClean = async (): Promise<boolean> => {
        left = await leftOf(cluster, namespace);
        return left.every(mayStay);
      };
      await until("nothing is left", DEADLINE_MS, isClean, 500).catch(() => {
        throw new Error(`left behind: ${left.filter((name) => !mayStay(name)).join(", ")}`);
      });
      const names = left.filter((name) => !name.startsWith("pod/"));
      return names.length === 0 ? "nothing stays" : `what is meant to stay: ${names.join(", ")}`;
    });
  await uninstall();
  await step(example, "install --wait over what stayed", async () => {
    await helm(["install", ...values, ...wait]);
    return readiness(cluster, namespace);
  });
  await uninstall();
  await kubectl(["delete", "namespace", namespace, "--timeout=120s"]);
};

const examples = globSync("*.yaml", { cwd: join(CHART, "examples") })
  .map((name) => basename(name, ".yaml"))
  .sort();
try {
  const cluster = await connectCluster(process.env);
  const endLeases = await keepFakeNodesAlive(cluster);
  const removeDefinitions = await installCustomResources(cluster, print);
  try {
    for (const example of examples) {
      await tryExample(cluster, example).catch(async (error: unknown) => {
        // Events say why a Job or a Deployment did not start.
        await checkEvents(cluster, namespaceOf(example));
        throw error;
      });
    }
  } finally {
    await removeDefinitions();
    endLeases();
  }
  print(`${examples.length} examples: no container ran, so probes and commands were not tested`);
} catch (error) {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
