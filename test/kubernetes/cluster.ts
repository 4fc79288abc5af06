import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findProgram, type Manifest } from "../chart/helm.ts";

const LOCAL_HOSTS = ["127.0.0.1", "localhost", "[::1]"];

export type Cluster = {
  kubectl(args: readonly string[], input?: string): Promise<string>;
  helm(args: readonly string[]): Promise<string>;
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

/** @throws Error unless the cluster is on this machine or CLUSTER_CONTEXT names it: namespaces are deleted. */
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
  if (!LOCAL_HOSTS.includes(new URL(server).hostname) && env["CLUSTER_CONTEXT"] !== context) {
    throw new Error(
      `the context ${context} is at ${server}, which is not this machine: ` +
        `to create and delete namespaces and definitions there anyway, set CLUSTER_CONTEXT=${context}`,
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
