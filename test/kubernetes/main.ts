import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Cluster, connectCluster } from "./cluster.ts";
import { findGoProgram } from "../outside/go-program.ts";
import { seedOfRun } from "../system/size.ts";
import { type AlertMonitor, type Watchers, monitorAlerts } from "./alert-monitor.ts";
import { type Client, startClient } from "./client.ts";
import { CLIENTS, type Events, startEvents } from "./events.ts";
import { startNodeAgent } from "./node-agent.ts";
import { createRelease, nameOf } from "./release.ts";
import { findHost, type Servers, startServers } from "./servers.ts";
import {
  type AlertGroup,
  type GroupName,
  isAboutAlerts,
  readSettings,
  referenceOf,
  ROOT,
  type Settings,
} from "./settings.ts";
import { createSteps, TABLE_HEAD } from "./step.ts";
import { tryAlerts } from "./steps/alerts.ts";
import { compareAll, uninstall } from "./steps/end.ts";
import { tryDeaths, tryHangs, tryMoves, tryOutage } from "./steps/faults.ts";
import { CREDENTIALS, install } from "./steps/install.ts";
import { tryNetwork } from "./steps/network.ts";
import { tryUpgrades } from "./steps/upgrades.ts";
import type { Trial } from "./trial.ts";

// Installs the image as docs/installation.md says and disturbs its pods while events come in and a client reads.

const NAMESPACE = "export-trial";
const CLIENT_NAMESPACE = "export-trial-clients";
const NODES = "export-trial-nodes";
const PARTITIONS = 6;
/** Alerts need more broken events than usual, and none before their time. */
const MANY_BROKEN = { poisonShare: 0.02, nullShare: 0 };

const USUAL_GROUPS: Readonly<Record<Exclude<GroupName, AlertGroup>, (trial: Trial) => Promise<void>>> = {
  network: tryNetwork,
  upgrades: tryUpgrades,
  deaths: tryDeaths,
  hangs: tryHangs,
  moves: tryMoves,
  outage: tryOutage,
};

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const folder = join(ROOT, ".local/kubernetes");

const valuesFor = ({ ports }: Servers): object => ({
  kafka: { partitions: PARTITIONS },
  redis: {
    users: Object.fromEntries(
      Object.entries({ exportApi: "export-api", jobs: "jobs", ops: "ops" }).map(([component, username]) => [
        component,
        { username, existingSecret: { name: CREDENTIALS, key: "redis" } },
      ]),
    ),
  },
  networkPolicy: {
    kafkaPorts: [ports.kafka],
    clickhousePorts: [ports.clickhouse],
    redisPorts: [ports.redis],
  },
});

const deleteNamespaces = async ({ kubectl }: Cluster): Promise<void> => {
  const names = [NAMESPACE, CLIENT_NAMESPACE, NODES];
  await kubectl(["delete", "namespace", ...names, "--ignore-not-found", "--timeout=180s"]);
};

const makeNamespaces = async ({ kubectl }: Cluster): Promise<void> => {
  for (const name of [CLIENT_NAMESPACE, NODES]) await kubectl(["create", "namespace", name]);
  await kubectl(["label", "namespace", NODES, "pod-security.kubernetes.io/enforce=privileged"]);
};

type Means = {
  readonly cluster: Cluster;
  readonly settings: Settings;
  readonly servers: Servers;
  readonly watchers: Watchers | null;
};

const run = async ({ cluster, settings, servers, watchers }: Means): Promise<void> => {
  const image = referenceOf(settings.image);
  const values = valuesFor(servers);
  const release = createRelease(cluster, { namespace: NAMESPACE, folder, image: settings.image, values });
  const seed = seedOfRun("kubernetes");
  let client: Client | null = null;
  let watch: AlertMonitor | null = null;
  const steps = createSteps({ release, client: () => client, watch: () => watch, print });

  print(TABLE_HEAD);
  await makeNamespaces(cluster);
  const keys = await install({ cluster, release, servers, steps, settings, clients: CLIENTS });
  const [pod] = await release.pods("ingest");
  const agent = await startNodeAgent(cluster, { namespace: NODES, image, node: pod?.spec.nodeName ?? "" });
  const { brokers } = servers.stack.kafka;
  const spoilsLater = settings.groups.includes("other-alerts");
  const events: Events = await startEvents({
    brokers,
    partitions: PARTITIONS,
    sample: { seed, ...(spoilsLater && MANY_BROKEN) },
    withBroken: !spoilsLater,
  });
  try {
    const api = `http://${nameOf("export-api")}.${NAMESPACE}/api`;
    const asking = await startClient(cluster, {
      namespace: CLIENT_NAMESPACE,
      image,
      api,
      key: keys.get("acme") ?? "",
    });
    client = asking;
    if (watchers !== null) watch = await monitorAlerts(release, watchers);
    const trial = {
      cluster,
      release,
      agent,
      servers,
      steps,
      events,
      watch,
      client: asking,
      clientNamespace: CLIENT_NAMESPACE,
    };
    for (const group of settings.groups)
      await (isAboutAlerts(group) ? tryAlerts(trial, group) : USUAL_GROUPS[group](trial));
    // Its requests would use up this client's rate limit.
    await asking.stop();
    client = null;
    await compareAll({ release, steps, events, keys });
  } finally {
    await Promise.allSettled([events.stop(), watch?.stop()]);
  }
  await uninstall({ release, steps, registry: settings.image.registry, folder });
};

const findWatchers = ({ groups }: Settings): Watchers | null => {
  const [prometheus, stateMetrics] = (["prometheus", "kube-state-metrics"] as const).map((name) => {
    const program = findGoProgram(name);
    if (program === undefined && groups.some(isAboutAlerts))
      throw new Error(`no ${name}: deploy/check/go-program.sh ${name} builds it`);
    return program;
  });
  return prometheus === undefined ? null : { prometheus, stateMetrics };
};

try {
  const settings = readSettings(process.env);
  const watchers = findWatchers(settings);
  const cluster = await connectCluster(process.env);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await deleteNamespaces(cluster);
  const servers = await startServers(join(folder, "servers"), settings.host ?? (await findHost(cluster)));
  try {
    await run({ cluster, settings, servers, watchers });
  } catch (error) {
    print(await cluster.kubectl(["get", "pods,events", "--namespace", NAMESPACE]).catch(String));
    throw error;
  } finally {
    try {
      await deleteNamespaces(cluster);
    } finally {
      await servers.stop();
    }
  }
} catch (error) {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
