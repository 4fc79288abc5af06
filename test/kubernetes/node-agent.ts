import type { Cluster } from "./cluster.ts";
import { programPath, startProgramPod } from "./program-pod.ts";
import type { Pod, ServiceName } from "./release.ts";

const NAME = "node-agent";

export type NodeAgent = {
  readonly pod: readonly string[];
  /** The service is process 1 in its pod and cannot signal itself. */
  signal(pod: Pod, service: ServiceName, signal: NodeJS.Signals): Promise<void>;
};

export const startNodeAgent = async (
  cluster: Cluster,
  deps: { readonly namespace: string; readonly image: string; readonly node: string },
): Promise<NodeAgent> => {
  const { namespace, image, node } = deps;
  await startProgramPod(cluster, {
    namespace,
    name: NAME,
    image,
    programs: ["signal"],
    args: ["--eval", "setInterval(() => {}, 1e6)"],
    // It stays while the node is drained.
    spec: { hostPID: true, nodeName: node, tolerations: [{ operator: "Exists" }] },
    securityContext: { runAsUser: 0, capabilities: { drop: ["ALL"], add: ["KILL"] } },
  });
  const own = [NAME, "--namespace", namespace];
  return {
    pod: own,
    signal: async (pod, service, signal) => {
      const args = [pod.metadata.uid, `services/${service}/src/main.ts`, signal];
      await cluster.kubectl(["exec", ...own, "--", "node", programPath("signal"), ...args]);
    },
  };
};
