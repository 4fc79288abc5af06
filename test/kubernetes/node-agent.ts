import type { Cluster } from "./cluster.ts";
import { programPath, startProgramPod } from "./program-pod.ts";
import type { Pod, ServiceName } from "./release.ts";

const NAME = "node-agent";

/** Sees all processes of a node. */
export type NodeAgent = {
  /** Its pod, for kubectl. */
  readonly pod: readonly string[];
  /** Sends a signal to the service in a pod, which it cannot send itself: it is process 1 there. */
  signal(pod: Pod, service: ServiceName, signal: NodeJS.Signals): Promise<void>;
};

/** Starts a pod on a node that may signal other processes there, and ends with its namespace. */
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
