import { CLIENT_PORT } from "../client.ts";
import { nameOf } from "../release.ts";
import type { Trial } from "../trial.ts";

const CONNECT = `require("node:net").connect({ host: process.argv[1], port: Number(process.argv[2]), timeout: 3000 })
  .on("connect", () => process.exit(0)).on("timeout", () => process.exit(1)).on("error", () => process.exit(1))`;

export const tryNetwork = async ({
  cluster,
  release,
  steps,
  agent,
  clientNamespace,
}: Trial): Promise<void> => {
  const { namespace } = release;
  const connects = (from: readonly string[], host: string, port: number): Promise<boolean> =>
    cluster.kubectl(["exec", ...from, "--", "node", "--eval", CONNECT, host, String(port)]).then(
      () => true,
      () => false,
    );
  await steps.step("network policies", {}, async () => {
    const [ingest] = await release.pods("ingest");
    const [exportApi] = await release.pods("export-api");
    const { podIP: client = "" } = (
      JSON.parse(
        await cluster.kubectl(["get", "pod", "client", "--namespace", clientNamespace, "--output=json"]),
      ) as {
        status: { podIP?: string };
      }
    ).status;
    const clientPod = ["client", "--namespace", clientNamespace];
    const ofIngest = [ingest?.metadata.name ?? "", "--namespace", namespace];
    const tries = [
      ["a client to export-api", clientPod, `${nameOf("export-api")}.${namespace}`, 80, true],
      ["a client to metrics of export-api", clientPod, exportApi?.status.podIP ?? "", 9090, false],
      ["a client to metrics of ingest", clientPod, ingest?.status.podIP ?? "", 9090, false],
      ["others to a client", agent.pod, client, CLIENT_PORT, true],
      ["ingest to a client", ofIngest, client, CLIENT_PORT, false],
      ["ingest to Redis", ofIngest, "redis", 6379, false],
      ["ingest to the API of Kubernetes", ofIngest, "kubernetes.default", 443, false],
    ] as const;
    const wrong: string[] = [];
    for (const [what, from, host, port, isAllowed] of tries)
      if ((await connects(from, host, port)) !== isAllowed)
        wrong.push(`${what}: ${isAllowed ? "cut" : "let through"}`);
    if (wrong.length > 0)
      throw new Error(`network policies (does the cluster enforce them?): ${wrong.join(", ")}`);
    return `${tries.length} connections as they must be`;
  });
};
