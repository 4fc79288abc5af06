import { until } from "../../system/until.ts";
import { type AlertWatch, type Firing, watchAlerts } from "../alert-watch.ts";
import { firstPod, untilRestarted } from "../pods.ts";
import { isReady, nameOf, type ServiceName } from "../release.ts";
import { firstCommands } from "../runbook.ts";
import type { Trial } from "../trial.ts";

/** What is done to the release, and what must be seen of it. */
type Fault = {
  readonly name: string;
  /** The alerts that must fire, and how a command of their runbook names the cause. */
  readonly alerts: Readonly<Record<string, RegExp>>;
  /** A pod of it stands for POD in the runbook. */
  readonly service: ServiceName;
  strike(): Promise<void>;
  heal(): Promise<void>;
};

/** How an operator came to know of a fault. */
type Told = { readonly alert: string; readonly after: number; readonly command: number };

const MINUTE_MS = 60_000;
/** The slowest of these alerts waits for a quarter of an hour. */
const DEADLINE_MS = 22 * MINUTE_MS;
const KILLS = 3;

const minutes = (ms: number): string => {
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
};

/** Runs the first commands of the runbook until one names the cause; its number, from 1. @throws Error when none does */
const findCause = async (
  { release }: Trial,
  { service }: Fault,
  alert: string,
  cause: RegExp,
): Promise<number> => {
  const [pod] = await release.pods(service);
  const said: string[] = [];
  for (const [index, command] of firstCommands(alert).entries()) {
    const line = command.replaceAll("POD", pod?.metadata.name ?? "POD");
    // What finds something wrong ends with another status than 0.
    const text = await release.runbook(line).catch(String);
    if (cause.test(text)) return index + 1;
    said.push(`$ ${line}\n${text}`);
  }
  throw new Error(`the runbook of ${alert} does not show ${cause}:\n${said.join("\n")}`);
};

/** Lets works run one after the other, whoever asks for them. */
const createTurns = (): (<T>(work: () => Promise<T>) => Promise<T>) => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
};

const firedSince = (watch: AlertWatch, from: number, alert: string): Firing | undefined =>
  watch.firings().find((one) => one.alert === alert && (one.to ?? Infinity) > from);

/** Strikes, follows the runbook of each alert as it fires, and heals. Resolves to what was told when. */
const tryFault = async (
  trial: Trial,
  watch: AlertWatch,
  { fault, inTurn }: { readonly fault: Fault; readonly inTurn: ReturnType<typeof createTurns> },
): Promise<readonly Told[]> => {
  const from = Date.now();
  const told: Told[] = [];
  await fault.strike();
  try {
    const missing = new Map(Object.entries(fault.alerts));
    const follow = async (): Promise<boolean> => {
      for (const [alert, cause] of missing) {
        const firing = firedSince(watch, from, alert);
        if (firing === undefined) continue;
        // The Jobs of the function in the notes are named by the second.
        const command = await inTurn(() => findCause(trial, fault, alert, cause));
        told.push({ alert, after: Math.max(0, firing.from - from), command });
        missing.delete(alert);
      }
      return missing.size === 0;
    };
    await until(`${fault.name}: ${[...missing.keys()].join()}`, DEADLINE_MS, follow, 2_000);
  } finally {
    await fault.heal();
  }
  return told;
};

const faultsOf = (trial: Trial): readonly (readonly Fault[])[] => {
  const { cluster, release, servers, agent } = trial;
  const inNamespace = ["--namespace", release.namespace];
  const scale = async (service: ServiceName, replicas: number): Promise<void> => {
    await cluster.kubectl(["scale", "deployment", nameOf(service), `--replicas=${replicas}`, ...inNamespace]);
  };
  const noProcess = (service: ServiceName): Fault => ({
    name: `no process of ${service}`,
    service,
    alerts: { ComponentDown: new RegExp(`-${service}\\s+0/0`) },
    strike: () => scale(service, 0),
    heal: () => scale(service, 2),
  });
  const killAgain = async (): Promise<void> => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      // Pods come by their names, so it is the same one. Two starts between two looks of Prometheus would be one.
      const isBack = async (): Promise<boolean> => isReady(await firstPod(release, "ingest"));
      await until("the pod is ready", 3 * MINUTE_MS, isBack, 500);
      const pod = await firstPod(release, "ingest");
      await agent.signal(pod, "ingest", "SIGKILL");
      await untilRestarted(release, "ingest", { struck: pod, deadlineMs: 3 * MINUTE_MS });
    }
  };

  return [
    [noProcess("ingest")],
    [
      {
        name: "ClickHouse away",
        service: "ingest",
        alerts: {
          IngestInsertsFail: /ClickHouse/,
          IngestBatchStuck: /ECONNREFUSED|ECONNRESET|socket hang up/,
          WatermarkOld: /ClickHouse/,
          FreshnessBudgetBurning: /ClickHouse/,
        },
        strike: () => servers.stack.clickhouse.stop(),
        heal: () => servers.stack.clickhouse.start(),
      },
    ],
    [
      {
        name: "Redis away",
        service: "ingest",
        alerts: { RedisAway: /Redis/, WriterLeaseLost: /Redis/, RateLimitsUnshared: /Redis/ },
        strike: () => servers.stack.redis.stop(),
        heal: () => servers.stack.redis.start(),
      },
    ],
    [
      noProcess("jobs"),
      {
        name: "an image that is missing",
        service: "export-api",
        alerts: { ProcessDown: /ErrImagePull|ImagePullBackOff|ErrImageNeverPull/ },
        strike: async () => {
          const target = `deployment/${nameOf("export-api")}`;
          await cluster.kubectl(["set", "image", target, "*=localhost/missing:0", ...inNamespace]);
        },
        heal: async () => {
          await cluster.kubectl(["rollout", "undo", `deployment/${nameOf("export-api")}`, ...inNamespace]);
        },
      },
      {
        name: "ingest killed three times",
        service: "ingest",
        alerts: { ProcessRestarting: /-ingest-\S+\s+\d\/\d\s+\S+\s+3 / },
        strike: killAgain,
        heal: async () => {},
      },
      {
        name: "two of a hundred events broken, keys made, a customer above its limit",
        service: "ingest",
        alerts: {
          OperatorChange: /keys create/,
          DeadLetters: /\bmessages\b.*\d/,
          DeadLettersMany: /\bmessages\b.*\d/,
          RequestsThrottled: /"clientId":"acme"/,
        },
        strike: async () => {
          await release.ops("keys", "create", "--client", "globex", "--scopes", "export");
        },
        heal: async () => {},
      },
    ],
  ];
};

/** Faults that last until the alerts of the chart fire and their runbooks show the cause. */
export const tryAlerts = async (trial: Trial): Promise<void> => {
  const { release, steps } = trial;
  const watch = await watchAlerts(release);
  try {
    for (const faults of faultsOf(trial)) {
      const names = faults.map(({ name }) => name).join("; ");
      await steps.step(names, { away: true, broken: true }, async () => {
        const from = Date.now();
        const inTurn = createTurns();
        const tries = faults.map((fault) => tryFault(trial, watch, { fault, inTurn }));
        const told = (await Promise.all(tries)).flat();
        await release.ready();
        const expected = new Set(told.map(({ alert }) => alert));
        const others = watch
          .firings()
          .filter((one) => one.from > from && !expected.has(one.alert))
          .map(({ alert }) => alert);
        const lines = told.map(
          ({ alert, after, command }) => `${alert} after ${minutes(after)}, cause by command ${command}`,
        );
        return [...lines, ...new Set(others.map((one) => `also ${one}`))].join("; ");
      });
    }
  } finally {
    await watch.stop();
  }
};
