import { join } from "node:path";
import { choosePorts } from "@conversation-export/local-stack";
import {
  createJobClient,
  hasEnded,
  type JobClient,
  type JobName,
  type JobType,
  type JobView,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { bySize } from "../system/size.ts";
import { type ServiceName, type ServiceProcess, startService } from "../system/service-process.ts";
import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { type Depth, type EndState, outcomeOf, readEndState } from "./end-state.ts";
import { jobOfStatement } from "./job-statements.ts";
import { startStatementGate, type StatementGate } from "./statement-gate.ts";

const DEADLINE_MS = bySize(240_000, 900_000);
const LOCK_MS = "2000";
const NO_SCHEDULES = Object.fromEntries(
  ["WINDOWS", "COMPACT", "ERASURE", "RETENTION", "RECONCILE"].map((name) => [
    `${name}_INTERVAL_SECONDS`,
    "0",
  ]),
);

/** A job with its data. */
export type Work = { readonly name: JobName; add(client: JobClient): Promise<unknown> };

/** Uses the name of the job as its id. */
export const work = <Data, Result>(type: JobType<Data, Result>, data: Data): Work => ({
  name: type.name,
  add: (client) => client.add(type, data, { id: type.name }),
});

/** Jobs that may run side by side, with a database, a queue and a process of their own. */
export type Lane = {
  readonly jobs: readonly JobName[];
  readonly gate: StatementGate<JobName>;
  readonly databaseUrl: string;
  /** Starts the processes, with the jobs in the queue. */
  start(): Promise<void>;
  /** Kills the process that runs the jobs by SIGKILL; `start` starts it again. */
  kill(): Promise<void>;
  /**
   * Resolves to the jobs that were caught, when every job has been caught since the gate was armed or has
   * ended.
   */
  inTheMiddle(): Promise<readonly JobName[]>;
  /** Resolves when all jobs have ended. */
  endState(): Promise<EndState>;
  close(): Promise<void>;
};

type Options = {
  readonly system: System;
  readonly database: string;
  /** Database number of Redis. */
  readonly index: number;
  readonly works: readonly Work[];
  /** Ingest writes into the database as well. */
  readonly withIngest: boolean;
  readonly leaseMs: number;
  readonly depth: Depth;
  /** Consumer group of ingest; jobs ask how far it has read. */
  readonly group: string;
};

export const openLane = async (options: Options): Promise<Lane> => {
  const { system, database, works, withIngest } = options;
  const { clickhouse, kafka, redis } = system.stack;
  const redisUrl = `${redis.url}/${options.index}`;
  const jobs = works.map(({ name }) => name);
  const gate = await startStatementGate({
    target: { host: clickhouse.host, port: clickhouse.port },
    jobOf: jobOfStatement(jobs),
  });
  const ports = await choosePorts({ names: ["jobs", "ingest"], fixed: {} });
  const client = createJobClient({ url: redisUrl, log: createLogger({ service: "test", level: "silent" }) });
  await client.start();
  for (const one of works) await one.add(client);

  const common = {
    KAFKA_BROKERS: kafka.brokers.join(","),
    KAFKA_GROUP_ID: options.group,
    KAFKA_SESSION_TIMEOUT_MS: "6000",
    REDIS_URL: redisUrl,
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
    WRITER_LEASE_MS: String(options.leaseMs),
  };
  const envs = {
    ingest: { ...common, CLICKHOUSE_URL: clickhouse.url("writer", database) },
    jobs: {
      ...common,
      ...NO_SCHEDULES,
      CLICKHOUSE_URL: gate.through(clickhouse.url("jobs", database)),
      JOB_LOCK_MS: LOCK_MS,
      BACKFILL_PART_EVENTS: bySize("60", "1000"),
      UPLOAD_WINDOW_GRACE_SECONDS: "0",
    },
  };
  const running = new Map<"ingest" | "jobs", ServiceProcess>();

  const start = async (name: Extract<ServiceName, "ingest" | "jobs">): Promise<void> => {
    const process = startService(name, {
      env: envs[name],
      metricsPort: ports[name],
      logFile: join(system.logFolder, `${database}-${name}.log`),
    });
    running.set(name, process);
    // Restarts a process that ends by itself, as an orchestrator would.
    void process.exited.then(() =>
      running.get(name) === process ? start(name).catch(() => undefined) : undefined,
    );
    await process.ready();
  };

  const stop = async (name: "ingest" | "jobs", signal: NodeJS.Signals): Promise<void> => {
    const process = running.get(name);
    running.delete(name);
    await process?.kill(signal);
  };

  const look = async (job: JobName): Promise<JobView> => {
    const view = await client.get(job, job);
    if (view === null) throw new Error(`the job ${job} is gone from the queue`);
    return view;
  };

  const untilAll = (what: string, holds: (job: JobName) => Promise<boolean>): Promise<void> =>
    until(`${database}: ${what}: ${jobs.join()}`, DEADLINE_MS, async () =>
      (await Promise.all(jobs.map(holds))).every(Boolean),
    );

  return {
    jobs,
    gate,
    databaseUrl: clickhouse.url("migrator", database),
    start: async () => {
      await Promise.all([start("jobs"), withIngest && !running.has("ingest") && start("ingest")]);
    },
    kill: () => stop("jobs", "SIGKILL"),
    inTheMiddle: async () => {
      await untilAll("caught or ended", async (job) => gate.caught().has(job) || hasEnded(await look(job)));
      return [...gate.caught()];
    },
    endState: async () => {
      await untilAll("ended", async (job) => {
        const view = await look(job).catch(() => null);
        return view !== null && hasEnded(view);
      });
      if (withIngest) await system.caughtUp(options.group, DEADLINE_MS);
      const views = await Promise.all(jobs.map(look));
      const counts = await client.counts();
      const unfinished = jobs.flatMap((job) => {
        const { waiting, delayed, active, parts } = counts[job];
        return waiting + delayed + active + parts === 0 ? [] : [job];
      });
      return {
        ...(await readEndState(clickhouse.url("migrator", database), options.depth)),
        ...Object.fromEntries(views.map((view) => [`outcome of ${view.name}`, outcomeOf(view)])),
        "unfinished jobs": unfinished,
      };
    },
    close: async () => {
      await Promise.all([stop("jobs", "SIGKILL"), stop("ingest", "SIGTERM")]);
      await client.stop();
      await gate.close();
    },
  };
};
