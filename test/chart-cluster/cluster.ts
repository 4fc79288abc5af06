import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findProgram, type Manifest, readManifests } from "../chart/helm.ts";

const LOCAL_HOSTS = ["127.0.0.1", "localhost", "[::1]"];

/** The cluster of KUBECONFIG, through kubectl and helm on the PATH. */
export type Cluster = {
  /** Resolves to the standard output of kubectl. @throws Error with its standard error. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  helm(args: readonly string[]): Promise<string>;
  /** The objects of one kind, or of several separated by commas. */
  list<T = Manifest>(namespace: string, kinds: string, selector?: string): Promise<T[]>;
};

const run = async (program: string, args: readonly string[], input?: string): Promise<string> => {
  const path = findProgram(program);
  if (path === null) throw new Error(`${program} is missing: put it on the PATH`);
  const started = promisify(execFile)(path, [...args], { maxBuffer: 64 * 1024 * 1024 });
  started.child.stdin?.end(input ?? "");
  try {
    return (await started).stdout;
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string };
    throw new Error(`${program} ${args.slice(0, 4).join(" ")} … failed: ${stderr.trim()}`, { cause: error });
  }
};

/**
 * Connects to the cluster of KUBECONFIG, where definitions and namespaces are created and deleted.
 *
 * @throws Error unless the cluster is on this machine or CHART_CLUSTER_CONTEXT names the context.
 */
export const connectCluster = async (env: NodeJS.ProcessEnv): Promise<Cluster> => {
  if (!env["KUBECONFIG"])
    throw new Error("KUBECONFIG is not set: it must name the file of a cluster to test on");
  const others = Object.keys(env).filter((name) => name.startsWith("HELM_KUBE"));
  if (others.length > 0)
    throw new Error(`${others.join()} would lead Helm to another cluster than kubectl: unset them`);
  const kubectl: Cluster["kubectl"] = (args, input) => run("kubectl", args, input);
  const context = (await kubectl(["config", "current-context"])).trim();
  const server = await kubectl([
    "config",
    "view",
    "--minify",
    "--output=jsonpath={.clusters[0].cluster.server}",
  ]);
  if (!LOCAL_HOSTS.includes(new URL(server).hostname) && env["CHART_CLUSTER_CONTEXT"] !== context) {
    throw new Error(
      `the context ${context} is at ${server}, which is not this machine: ` +
        `to create and delete namespaces and definitions there anyway, set CHART_CLUSTER_CONTEXT=${context}`,
    );
  }
  return {
    kubectl,
    helm: (args) => run("helm", args),
    list: async <T = Manifest>(namespace: string, kinds: string, selector = ""): Promise<T[]> => {
      const args = ["get", kinds, "--namespace", namespace, "--output=json", "--ignore-not-found"];
      const text = await kubectl([...args, `--selector=${selector}`]);
      return text === "" ? [] : (JSON.parse(text) as { items: T[] }).items;
    },
  };
};

type Release = { readonly manifest: string; readonly hooks: readonly { readonly manifest: string }[] };

/** The objects that Helm would create, hooks included, as checked by the server. */
export const dryRun = async (
  cluster: Cluster,
  args: readonly string[],
): Promise<{ readonly objects: Manifest[]; readonly hooks: Manifest[] }> => {
  const text = await cluster.helm(["upgrade", "--install", ...args, "--dry-run=server", "--output=json"]);
  const { manifest, hooks } = JSON.parse(text) as Release;
  return {
    objects: readManifests(manifest),
    hooks: hooks.flatMap((hook) => readManifests(hook.manifest)),
  };
};

type Node = {
  readonly metadata: { readonly name: string };
  readonly status: { readonly nodeInfo: { readonly kubeletVersion: string } };
};

/**
 * Renews the leases of kwok's fake nodes, which kwok may omit; without them pods stop being ready after a
 * minute. Returns a function that ends it.
 */
export const keepFakeNodesAlive = async (cluster: Cluster): Promise<() => void> => {
  const { items } = JSON.parse(await cluster.kubectl(["get", "nodes", "--output=json"])) as { items: Node[] };
  const names = items
    .filter(({ status }) => status.nodeInfo.kubeletVersion.startsWith("kwok"))
    .map(({ metadata }) => metadata.name);
  const renew = async (): Promise<void> => {
    const leases = names.map((name) => ({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace: "kube-node-lease" },
      spec: {
        holderIdentity: name,
        leaseDurationSeconds: 40,
        renewTime: new Date().toISOString().replace("Z", "000Z"),
      },
    }));
    await cluster.kubectl(
      ["apply", "--filename=-"],
      JSON.stringify({ apiVersion: "v1", kind: "List", items: leases }),
    );
  };
  if (names.length === 0) return () => undefined;
  await renew();
  const timer = setInterval(() => void renew().catch(() => undefined), 10_000);
  return () => clearInterval(timer);
};
