import { until } from "../../system/until.ts";
import { firstPod, restartsOf, untilRestarted } from "../pods.ts";
import { type Pod, type Release, type ServiceName, SERVICES } from "../release.ts";
import { expectSays, refusalOf, type Trial } from "../trial.ts";

const GREEDY = "const kept = []; for (;;) kept.push(Buffer.alloc(20_000_000, 1));";
/** A hung process is gone after 75 seconds at most; a container that ended before waits 10, 20 or 40 seconds more. */
const HUNG_MS = 150_000;
const DRAIN_ENDED = /global timeout reached|drain did not complete within|deadline exceeded/;

const recovery = async (
  release: Release,
  service: ServiceName,
  { struck, deadlineMs }: { readonly struck: Pod; readonly deadlineMs: number },
): Promise<string> => {
  const from = Date.now();
  const since = (): string => `${Math.round((Date.now() - from) / 1000)} s`;
  await untilRestarted(release, service, { struck, deadlineMs });
  const restarted = since();
  await release.ready();
  return `restarted after ${restarted}, all ready after ${since()}`;
};

export const tryDeaths = async ({ cluster, release, agent, steps: { step } }: Trial): Promise<void> => {
  for (const service of SERVICES) {
    await step(`delete a pod of ${service}`, {}, async () => {
      const { name } = (await firstPod(release, service)).metadata;
      await cluster.kubectl(["delete", "pod", name, "--namespace", release.namespace, "--wait=true"]);
      await release.ready();
      return "";
    });
  }
  for (const service of SERVICES) {
    await step(`SIGKILL of ${service}`, { broken: service === "export-api" }, async () => {
      const pod = await firstPod(release, service);
      await agent.signal(pod, service, "SIGKILL");
      return recovery(release, service, { struck: pod, deadlineMs: 30_000 });
    });
  }
  await step("ingest out of memory", {}, async () => {
    const pod = await firstPod(release, "ingest");
    const inPod = ["exec", pod.metadata.name, "--namespace", release.namespace, "--"];
    const said = await refusalOf(
      "memory beyond the limit",
      cluster.kubectl([...inPod, "node", "--eval", GREEDY]),
    );
    await release.ready();
    expectSays(said, "137");
    const [after] = (await release.pods("ingest")).filter(
      ({ metadata }) => metadata.uid === pod.metadata.uid,
    );
    const isRestarted = after !== undefined && restartsOf(after) > restartsOf(pod);
    return isRestarted ? "the container restarted" : "only the process beside it was killed";
  });
};

export const tryHangs = async ({ release, agent, steps: { step } }: Trial): Promise<void> => {
  for (const service of SERVICES) {
    await step(`SIGSTOP of ${service}`, { broken: service === "export-api" }, async () => {
      const pod = await firstPod(release, service);
      await agent.signal(pod, service, "SIGSTOP");
      return recovery(release, service, { struck: pod, deadlineMs: HUNG_MS });
    });
  }
};

export const tryMoves = async ({ cluster, release, steps: { step } }: Trial): Promise<void> => {
  await step("drain of a node", {}, async () => {
    const node = (await firstPod(release, "ingest")).spec.nodeName ?? "";
    const args = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=45s"];
    const selector = "--pod-selector=app.kubernetes.io/instance=export";
    try {
      return await cluster.kubectl([...args, selector]).then(
        () => "all pods went",
        (error: unknown) => {
          if (!DRAIN_ENDED.test(String(error))) throw error;
          return "the budgets kept one pod of each kind";
        },
      );
    } finally {
      await cluster.kubectl(["uncordon", node]);
      await release.ready();
    }
  });
  await step("ingest from 2 to 3 to 1 to 2", {}, async () => {
    for (const replicas of ["3", "1", "2"]) {
      await release.upgrade({ "ingest.replicas": replicas });
      await release.ready();
    }
    return "";
  });
};

export const tryOutage = async ({ release, servers, client, steps: { step } }: Trial): Promise<void> => {
  await step("ClickHouse away", { away: true, broken: true }, async () => {
    const from = Date.now();
    await servers.stack.clickhouse.stop();
    const isSeen = async (): Promise<boolean> => ((await client.since(from)).statuses["503"] ?? 0) > 0;
    await until("clients see that it is away", 60_000, isSeen);
    await servers.stack.clickhouse.start();
    const back = Date.now();
    const isServed = async (): Promise<boolean> => {
      const { statuses } = await client.since(Date.now() - 2_000);
      return (statuses["200"] ?? 0) > 0 && statuses["503"] === undefined;
    };
    await until("clients are served again", 60_000, isServed);
    await release.ready();
    return `served again ${Math.round((Date.now() - back) / 1000)} s after it was back`;
  });
};
