import { until, within } from "../../system/until.ts";
import { type AlertMonitor, type Firing, INTERVAL_SECONDS } from "../alert-monitor.ts";
import { firstPod, untilRestarted } from "../pods.ts";
import type { AlertGroup } from "../settings.ts";
import { isReady, nameOf, RELEASE, type ServiceName } from "../release.ts";
import { firstCommands } from "../runbook.ts";
import type { Allowed } from "../step.ts";
import { refusalOf, type Trial } from "../trial.ts";

type Expected = {
  readonly alert: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly cause: RegExp;
  /** It looks back longer than the trial waits for its end. */
  readonly outlasts?: true;
};

type Fault = {
  readonly name: string;
  readonly alerts: readonly Expected[];
  /** Its pod replaces POD in the runbook when the alert is about none. */
  readonly service: ServiceName;
  strike(): Promise<void>;
  heal(): Promise<void>;
};

type Reported = {
  readonly alert: string;
  /** ms from the fault. */
  readonly after: number;
  readonly command: number;
  /** ms from the repair; null: not waited for. */
  readonly over: number | null;
};

const MINUTE_MS = 60_000;
/** The slowest of these alerts waits a quarter of an hour. */
const DEADLINE_MS = 22 * MINUTE_MS;
const END_DEADLINE_MS = 15 * MINUTE_MS;
/** An alert may pause when a pod was not scraped. */
const SILENT_MS = 3_000 * INTERVAL_SECONDS;
const KILLS = 3;
const CLICKHOUSE_AWAY = /ClickHouse does not answer/;

const minutes = (ms: number): string => {
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
};

/** Number of the command, from 1. */
const findCause = async (
  { release }: Trial,
  { service }: Fault,
  { cause }: Expected,
  { alert, labels }: Firing,
): Promise<number> => {
  const pod = labels["pod"] ?? (await release.pods(service))[0]?.metadata.name ?? "POD";
  const said: string[] = [];
  for (const [index, command] of firstCommands(alert).entries()) {
    const line = command
      .replaceAll("POD", pod)
      .replaceAll("JOB", labels["job_name"] ?? "JOB")
      .replaceAll("RELEASE", RELEASE);
    // Commands that find something wrong exit with an error.
    const text = await release.runbook(line).catch(String);
    if (cause.test(text)) return index + 1;
    said.push(`$ ${line}\n${text}`);
  }
  throw new Error(`the runbook of ${alert} does not show ${cause}:\n${said.join("\n")}`);
};

const firingsOf = (watch: AlertMonitor, { alert, labels = {} }: Expected): readonly Firing[] =>
  watch
    .firings()
    .filter(
      (one) =>
        one.alert === alert && Object.entries(labels).every(([name, value]) => one.labels[name] === value),
    );

/** ms since the epoch; null: it fires, or paused a moment. */
const endOf = (watch: AlertMonitor, expected: Expected): number | null => {
  const ends = firingsOf(watch, expected).map(({ to }) => to ?? Infinity);
  const end = Math.max(...ends);
  return Date.now() - end > SILENT_MS ? end : null;
};

const tryFault = async (trial: Trial, watch: AlertMonitor, fault: Fault): Promise<readonly Reported[]> => {
  const before = fault.alerts.filter((one) => firingsOf(watch, one).some(({ to }) => to === null));
  if (before.length > 0) throw new Error(`${fault.name}: ${before[0]?.alert} fires before the fault`);
  const from = Date.now();
  const found = new Map<Expected, { readonly after: number; readonly command: number }>();
  try {
    await fault.strike();
    const missing = new Set(fault.alerts);
    const follow = async (): Promise<boolean> => {
      for (const expected of missing) {
        const firing = firingsOf(watch, expected).find((one) => one.from >= from);
        if (firing === undefined) continue;
        const command = await findCause(trial, fault, expected, firing);
        found.set(expected, { after: firing.from - from, command });
        missing.delete(expected);
      }
      return missing.size === 0;
    };
    const names = fault.alerts.map(({ alert }) => alert).join();
    await within(`${fault.name}: ${names}`, DEADLINE_MS, follow, 2_000);
    const ended = fault.alerts.filter((one) => endOf(watch, one) !== null);
    if (ended.length > 0) throw new Error(`${fault.name}: ${ended[0]?.alert} ended before the repair`);
  } finally {
    await fault.heal();
  }
  const healed = Date.now();
  const reported = [...found].map(async ([expected, { after, command }]): Promise<Reported> => {
    const { alert, outlasts } = expected;
    if (outlasts) return { alert, after, command, over: null };
    const isOver = (): boolean => endOf(watch, expected) !== null;
    await within(`${fault.name}: the end of ${alert}`, END_DEADLINE_MS, isOver, 2_000);
    return { alert, after, command, over: Math.max(0, (endOf(watch, expected) ?? healed) - healed) };
  });
  return Promise.all(reported);
};

/** Concurrent faults. */
type Group = { readonly allowed: Allowed; readonly faults: readonly Fault[] };

const noProcess = ({ cluster, release }: Trial, service: ServiceName): Fault => {
  const scale = async (replicas: number): Promise<void> => {
    const target = ["deployment", nameOf(service), "--namespace", release.namespace];
    await cluster.kubectl(["scale", ...target, `--replicas=${replicas}`]);
  };
  return {
    name: `no process of ${service}`,
    service,
    alerts: [
      {
        alert: "ComponentDown",
        labels: { job: `conversation-export-${service}` },
        cause: new RegExp(`-${service}\\s+0/0`),
      },
    ],
    strike: () => scale(0),
    heal: () => scale(2),
  };
};

const clickhouseAway = ({ servers }: Trial): Group => ({
  allowed: { away: true, broken: true },
  faults: [
    {
      name: "ClickHouse away",
      service: "ingest",
      alerts: [
        { alert: "IngestInsertsFail", cause: CLICKHOUSE_AWAY },
        {
          alert: "IngestBatchStuck",
          cause: /"a step failed, retrying".*ECONN|ECONN.*"a step failed, retrying"/,
        },
        { alert: "WatermarkOld", cause: CLICKHOUSE_AWAY },
        { alert: "FreshnessBudgetBurning", cause: CLICKHOUSE_AWAY, outlasts: true },
      ],
      strike: () => servers.stack.clickhouse.stop(),
      heal: () => servers.stack.clickhouse.start(),
    },
  ],
});

const noIngest = (trial: Trial): Group => {
  const { cluster, release } = trial;
  const migrate = (password: string): Promise<void> =>
    release.upgrade({
      "clickhouse.users.migrator.existingSecret.key": JSON.stringify(password),
      "migrations.backoffLimit": "0",
    });
  return {
    allowed: {},
    faults: [
      noProcess(trial, "ingest"),
      {
        name: "a client changed",
        service: "jobs",
        alerts: [
          {
            alert: "OperatorChange",
            labels: { command: "clients set" },
            cause: /clients set/,
            outlasts: true,
          },
        ],
        strike: async () => {
          await release.ops("clients", "set", "globex", "--rate-limit", "messages=default");
        },
        heal: async () => {},
      },
      {
        name: "a migration that fails",
        service: "jobs",
        alerts: [{ alert: "MigrationFailed", cause: /ClickHouse refuses/ }],
        strike: async () => {
          await refusalOf("the upgrade", migrate("wrong"));
        },
        heal: async () => {
          const jobs = ["jobs", "--selector=app.kubernetes.io/component=migrate"];
          await cluster.kubectl(["delete", ...jobs, "--namespace", release.namespace]);
        },
      },
    ],
  };
};

const kafkaAway = ({ events, servers }: Trial): Group => ({
  allowed: {},
  faults: [
    {
      name: "Kafka away",
      service: "ingest",
      alerts: ["WatermarkOld", "IngestLagUnknown"].map((alert) => ({
        alert,
        // The proxy to the broker accepts connections while it is down.
        cause: /Kafka does not answer|the broker is restarting/,
      })),
      strike: async () => {
        await events.pause();
        await servers.stack.kafka.stop();
      },
      heal: async () => {
        await servers.stack.kafka.start();
        events.resume();
      },
    },
  ],
});

const redisAway = ({ servers }: Trial): Group => ({
  allowed: {},
  faults: [
    {
      name: "Redis away",
      service: "ingest",
      alerts: ["RedisAway", "RateLimitsUnshared"].map((alert) => ({ alert, cause: /Redis does not answer/ })),
      strike: () => servers.stack.redis.stop(),
      heal: () => servers.stack.redis.start(),
    },
  ],
});

const otherFaults = (trial: Trial): Group => {
  const { cluster, release, agent, events } = trial;
  const inNamespace = ["--namespace", release.namespace];
  const apiDeployment = `deployment/${nameOf("export-api")}`;
  const limit = async (rate: string): Promise<void> => {
    const rates = ["conversations", "messages"].flatMap((list) => ["--rate-limit", `${list}=${rate}`]);
    await release.ops("clients", "set", "acme", ...rates);
  };
  const killAgain = async (): Promise<void> => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      // Pods are sorted by name, so it is the same one; Prometheus must have seen each start.
      const from = Date.now();
      const isSeen = async (): Promise<boolean> =>
        isReady(await firstPod(release, "ingest")) && Date.now() - from > 2_000 * INTERVAL_SECONDS;
      await until("the pod is ready and was scraped", 3 * MINUTE_MS, isSeen, 500);
      const pod = await firstPod(release, "ingest");
      await agent.signal(pod, "ingest", "SIGKILL");
      await untilRestarted(release, "ingest", { struck: pod, deadlineMs: 3 * MINUTE_MS });
    }
  };

  return {
    allowed: {},
    faults: [
      noProcess(trial, "jobs"),
      {
        name: "an image that is missing",
        service: "export-api",
        alerts: [{ alert: "ProcessDown", cause: /ErrImagePull|ImagePullBackOff|ErrImageNeverPull/ }],
        strike: async () => {
          await cluster.kubectl(["set", "image", apiDeployment, "*=localhost/missing:0", ...inNamespace]);
        },
        heal: async () => {
          await cluster.kubectl(["rollout", "undo", apiDeployment, ...inNamespace]);
        },
      },
      {
        name: "ingest killed three times",
        service: "ingest",
        alerts: [
          { alert: "ProcessRestarting", cause: /-ingest-\S+\s+\d\/\d\s+\S+\s+[3-9] /, outlasts: true },
        ],
        strike: killAgain,
        heal: async () => {},
      },
      {
        name: "two of a hundred events broken",
        service: "ingest",
        alerts: ["DeadLetters", "DeadLettersMany"].map((alert) => ({
          alert,
          labels: { topic: "conversations" },
          cause: /^conversations\/\d+\/\d+\s+[a-z]+_[a-z_]+/m,
          ...(alert === "DeadLetters" && { outlasts: true }),
        })),
        strike: async () => events.sendBroken(true),
        heal: async () => events.sendBroken(false),
      },
      {
        name: "a client above its limit",
        service: "export-api",
        alerts: [{ alert: "RequestsThrottled", cause: /"clientId":"acme"/ }],
        strike: () => limit("1/5s"),
        heal: () => limit("default"),
      },
    ],
  };
};

const GROUPS: Readonly<Record<AlertGroup, (trial: Trial) => Group>> = {
  "clickhouse-alerts": clickhouseAway,
  "ingest-alerts": noIngest,
  "kafka-alerts": kafkaAway,
  "redis-alerts": redisAway,
  "other-alerts": otherFaults,
};

export const tryAlerts = async (trial: Trial, group: AlertGroup): Promise<void> => {
  const { release, steps, watch } = trial;
  if (watch === null) throw new Error("nothing watches the alerts");
  const { allowed, faults } = GROUPS[group](trial);
  const names = faults.map(({ name }) => name).join("; ");
  await steps.step(names, allowed, async () => {
    const tries = await Promise.allSettled(faults.map((fault) => tryFault(trial, watch, fault)));
    const reported = tries.flatMap((one) => {
      if (one.status === "rejected") throw one.reason;
      return one.value;
    });
    await release.ready();
    return reported
      .map(
        ({ alert, after, command, over }) =>
          `${alert} after ${minutes(after)}, cause by command ${command}` +
          (over === null ? "" : `, over ${minutes(over)} after the repair`),
      )
      .join("; ");
  });
};
