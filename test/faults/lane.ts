import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { choosePorts } from "@conversation-export/local-stack";
import {
  createJobClient,
  erasureJob,
  hasEnded,
  type JobClient,
  type JobName,
  type JobType,
  type JobView,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { bySize } from "../system/size.ts";
import { type ServiceName, type ServiceProcess, startService } from "../system/service-process.ts";
import { readMetric } from "../system/metrics-text.ts";
import { redisCommand } from "../system/redis-command.ts";
import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { type Depth, type EndState, outcomeOf, readEndState } from "./end-state.ts";
import { jobOfStatement } from "./job-statements.ts";
import { startStatementGate, type StatementGate } from "./statement-gate.ts";
import { stopProcess } from "../system/stop-process.ts";

/** Far below the test's timeout, so that a hang is reported. */
const DEADLINE_MS = bySize(90_000, 400_000);
const LOCK_MS = "2000";

const EVIDENCE_MS = 10_000;

const WORK_OF_CLICKHOUSE = `
  SELECT 'statement', toString(elapsed), substring(query, 1, 200) FROM system.processes
    WHERE current_database = currentDatabase() AND query NOT LIKE '%system.processes%'
  UNION ALL SELECT 'mutation', latest_fail_reason, concat(table, ': ', substring(command, 1, 200))
    FROM system.mutations WHERE database = currentDatabase() AND NOT is_done
  UNION ALL SELECT 'merge', toString(elapsed), concat(table, ': ', result_part_name)
    FROM system.merges WHERE database = currentDatabase()
  FORMAT TSV`;

export type Work = { readonly name: JobName; add(client: JobClient): Promise<unknown> };

export const work = <Data, Result>(type: JobType<Data, Result>, data: Data): Work => ({
  name: type.name,
  add: (client) => client.add(type, data, { id: type.name }),
});

/** Jobs that may run concurrently, with their own database, queue and process. */
export type Lane = {
  readonly jobs: readonly JobName[];
  readonly gate: StatementGate<JobName>;
  readonly databaseUrl: string;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Pauses the jobs process until another has run the jobs, then lets it finish what the gate holds. */
  takeOver(): Promise<void>;
  emptyRedis(): Promise<void>;
  /** Resolves, when every job was caught or ended since the gate was armed, to the caught ones. */
  inTheMiddle(): Promise<readonly JobName[]>;
  /** Waits for all jobs and for the removal of what dead processes left. */
  sweep(): Promise<void>;
  endState(): Promise<EndState>;
  close(): Promise<void>;
};

type Options = {
  readonly system: System;
  readonly database: string;
  readonly index: number;
  readonly works: readonly Work[];
  readonly withIngest: boolean;
  readonly depth: Depth;
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
  const ports = await choosePorts({ names: ["jobs", "ingest", "other"], fixed: {} });
  const client = createJobClient({ url: redisUrl, log: createLogger({ service: "test", level: "silent" }) });
  await client.start();
  const addWorks = async (): Promise<void> => {
    for (const one of works) await one.add(client);
  };
  await addWorks();

  const common = {
    KAFKA_BROKERS: kafka.brokers.join(","),
    KAFKA_SESSION_TIMEOUT_MS: "6000",
    REDIS_URL: redisUrl,
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
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

  const databaseUrl = clickhouse.url("migrator", database);
  const evidence = async (): Promise<string> => {
    const views = await Promise.all(jobs.map((job) => client.get(job, job).catch(String)));
    const work = await runSql(databaseUrl, WORK_OF_CLICKHOUSE).catch(String);
    return `${JSON.stringify(views)}\n${work}log: ${system.logFolder}`;
  };

  const untilAll = async (what: string, holds: (job: JobName) => Promise<boolean>): Promise<void> => {
    const left = new Set(jobs);
    try {
      await until(`${database}: ${what}`, DEADLINE_MS, async () => {
        for (const job of left) if (await holds(job)) left.delete(job);
        return left.size === 0;
      });
    } catch (error) {
      const reported = await Promise.race([evidence(), sleep(EVIDENCE_MS, "the servers do not answer")]);
      throw new Error(`${String(error)}: ${[...left].join()}\n${reported}`, { cause: error });
    }
  };

  const untilEnded = (): Promise<void> =>
    untilAll("ended", async (job) => {
      const view = await look(job).catch(() => null);
      return view !== null && hasEnded(view);
    });

  const eraseAsScheduled = async (): Promise<void> => {
    const id = `scheduled-${Date.now()}`;
    await client.add(erasureJob, { clientId: null, requestId: null }, { id });
    await until(`${database}: an erasure has ended`, DEADLINE_MS, async () => {
      const view = await client.get("erasure", id);
      return view !== null && hasEnded(view);
    });
  };

  const readRedis = async (): Promise<string[]> => {
    const keys = await Promise.all(
      ["exclusive:*", "*:lock", "job-held:*", "schedules-lock"].map((pattern) =>
        redisCommand(redisUrl, `KEYS conversation-export:${pattern}`),
      ),
    );
    return keys.flatMap((answer) =>
      answer.split("\r\n").filter((line) => line.startsWith("conversation-export")),
    );
  };

  return {
    jobs,
    gate,
    databaseUrl,
    start: async () => {
      await Promise.all([start("jobs"), withIngest && !running.has("ingest") && start("ingest")]);
    },
    kill: () => stop("jobs", "SIGKILL"),
    takeOver: async () => {
      const paused = running.get("jobs");
      if (paused === undefined) throw new Error("no process runs the jobs");
      await stopProcess(paused.pid);
      const other = startService("jobs", {
        env: envs.jobs,
        metricsPort: ports.other,
        logFile: join(system.logFolder, `${database}-other.log`),
      });
      try {
        await untilEnded();
      } finally {
        process.kill(paused.pid, "SIGCONT");
      }
      gate.release();
      await until(`${database}: it has nothing to do`, DEADLINE_MS, async () => {
        const working = await Promise.all(
          jobs.map((queue) =>
            readMetric(paused.metricsUrl, "conversation_export_job_running", { queue }).catch(() => 1),
          ),
        );
        return working.every((count) => count === 0);
      });
      await other.kill("SIGTERM");
    },
    emptyRedis: async () => {
      await redisCommand(redisUrl, "FLUSHDB");
      gate.release();
      await addWorks();
    },
    inTheMiddle: async () => {
      await untilAll("caught or ended", async (job) => gate.caught().has(job) || hasEnded(await look(job)));
      return [...gate.caught()];
    },
    sweep: async () => {
      await untilEnded();
      const left = `SELECT (SELECT count() FROM job_keys) + (SELECT count() FROM backfill_rows)
        + (SELECT count() FROM erasure_keys)`;
      await until(`${database}: what was left is removed`, 60_000, async () => {
        if ((await runSql(databaseUrl, left)).trim() === "0") return true;
        // Jobs sweep at start-up, but the next erasure removes what erasures left.
        await stop("jobs", "SIGTERM");
        // As if dead processes had been silent for long.
        await runSql(databaseUrl, "DELETE FROM coordination WHERE startsWith(name, 'jobs ')");
        const agedKeys =
          "ALTER TABLE erasure_keys UPDATE added_at = now() - INTERVAL 2 DAY WHERE startsWith(request_id, 'expired/')";
        await runSql(databaseUrl, agedKeys);
        await start("jobs");
        if (jobs.includes("erasure")) await eraseAsScheduled();
        return false;
      });
    },
    endState: async () => {
      await untilEnded();
      if (withIngest) await system.caughtUp(DEADLINE_MS);
      const views = await Promise.all(jobs.map(look));
      const counts = await client.counts();
      const unfinished = jobs.flatMap((job) => {
        const { waiting, delayed, active, parts } = counts[job];
        return waiting + delayed + active + parts === 0 ? [] : [job];
      });
      let left: string[] = [];
      await until(`${database}: nothing is left in Redis`, 20_000, async () => {
        left = await readRedis();
        return left.length === 0;
      }).catch(() => undefined);
      return {
        "left in Redis": left,
        ...(await readEndState(databaseUrl, options.depth)),
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
