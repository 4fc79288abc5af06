import { randomUUID } from "node:crypto";
import {
  createExclusive,
  createJobBoard,
  createJobWorkers,
  createRedis,
  createSchedules,
  registerQueueMetrics,
} from "@conversation-export/queue";
import { type Part, startService } from "@conversation-export/runtime";
import { createSuppressionGate } from "@conversation-export/suppression";
import {
  createAuditStore,
  createInFlight,
  createMovedDates,
  createStableStore,
  createCoordination,
  createSuppressionStore,
} from "@conversation-export/warehouse";
import { createBackfillJob } from "./backfill/job.ts";
import { createCompactJob } from "./compaction/job.ts";
import { readConfig } from "./config.ts";
import { createErasureJob } from "./erasure/job.ts";
import { createAuditMonitor } from "./process/audit-monitor.ts";
import { createAnswerMonitor } from "./process/answer-monitor.ts";
import { createBus } from "./process/bus.ts";
import { createRunHolders } from "./process/run-holders.ts";
import { createRunUpload } from "./process/run-upload.ts";
import { schedulesOf } from "./process/schedules.ts";
import { withSetupErrors } from "./process/setup-errors.ts";
import type { AssembledJob } from "./process/shared.ts";
import { createSweeping } from "./process/sweeping.ts";
import { createWarehouse } from "./process/warehouse.ts";
import { createReconcileJob } from "./reconcile/job.ts";
import { createReplayJob } from "./replay/job.ts";
import { createRetentionJob } from "./retention/job.ts";
import { createMovedDatesMonitor } from "./stable/moved-dates-monitor.ts";
import { createStableMonitor } from "./stable/stable-monitor.ts";
import { createWindowsJob } from "./windows/job.ts";

const ASK_EVERY_MS = 1_000;
const SETTLE_EVERY_MS = 2_000;
const NOTE_DATES_EVERY_MS = 30_000;
const LOOK_AT_AUDIT_EVERY_MS = 15_000;
/** For the other parts when jobs take all their time to stop. */
const STOP_RESERVE_MS = 3_000;

const { config, log, metrics, run } = await startService({ service: "jobs", readConfig, foreign: "all" });
const application = "conversation-export-jobs";

const redis = createRedis({ ...config.redis, log, onRefused: (error) => running.fatal(error) });
const redisMonitor = createAnswerMonitor({ name: "Redis", ping: redis.tryWrite, everyMs: ASK_EVERY_MS });
metrics.gauge("conversation_export_redis_up", "1 when Redis answers and takes writes", [], (gauge) =>
  gauge.set(redisMonitor.answers() === true ? 1 : 0),
);
const warehouse = createWarehouse({ config, application, askEveryMs: ASK_EVERY_MS, metrics, log });
const { session } = warehouse;

const coordination = createCoordination({ session });
const gate = createSuppressionGate({
  stamps: coordination,
  store: createSuppressionStore({ session }),
  secret: config.suppressionSecret,
  maxHeld: config.maxSuppressions,
  onLost: (error) => running.fatal(error),
  metrics,
  log,
});
const stableStore = createStableStore({ session });
const stableMonitor = createStableMonitor({
  coordination,
  store: stableStore,
  intervalMs: SETTLE_EVERY_MS,
  metrics,
  log,
  now: Date.now,
});
const auditMonitor = createAuditMonitor({
  store: createAuditStore({ session }),
  everyMs: LOOK_AT_AUDIT_EVERY_MS,
  elapsed: () => performance.now(),
  metrics,
  log,
});
const bus = createBus({ config, application, log, onFatal: (error) => running.fatal(error) });
const inFlight = createInFlight({
  coordination,
  writer: randomUUID(),
  log,
  now: () => performance.now(),
});
const runUpload = createRunUpload({ gate, inFlight });
const exclusive = createExclusive({ redis, lockMs: config.lockMs });
const runHolders = createRunHolders({ coordination, redisId: redis.ownId, log });
const movedDates = createMovedDatesMonitor({
  dates: createMovedDates({ session }),
  stable: stableStore,
  exclusive,
  intervalMs: NOTE_DATES_EVERY_MS,
  metrics,
  log,
  now: Date.now,
});

const shared = {
  config,
  session,
  coordination,
  redis,
  bus,
  gate,
  runUpload,
  stable: stableStore,
  exclusive,
  runHolders,
  metrics,
  log,
};
const jobs: readonly AssembledJob[] = [
  createBackfillJob(shared),
  createReplayJob(shared),
  createRetentionJob(shared),
  createReconcileJob(shared),
  createErasureJob(shared),
  createWindowsJob(shared),
  createCompactJob(shared),
];

const workers = createJobWorkers({
  ...config.redis,
  jobs: jobs.map(({ job }) => withSetupErrors(job)),
  lockMs: config.lockMs,
  stopWithinMs: Math.max(config.shutdownDeadlineMs - STOP_RESERVE_MS, 500),
  metrics,
  log,
  onFatal: (error) => running.fatal(error),
});
const schedules = createSchedules({ ...config.redis, schedules: schedulesOf(config), metrics, log });
registerQueueMetrics({ redis, metrics, log, now: Date.now });

const boardParts: readonly Part[] =
  config.board === null
    ? []
    : [{ name: "board", ...createJobBoard({ ...config.redis, ...config.board, host: config.host, log }) }];

const ready = (): true | string => {
  const reasons = [redisMonitor.answers(), warehouse.answers(), workers.ready()].filter(
    (answer) => answer !== true,
  );
  return reasons.length === 0 || reasons.join("; ");
};

const startRedis = async (): Promise<void> => {
  await redis.start();
  try {
    const { problems, ...facts } = await redis.checkServer();
    for (const problem of problems) log.warn(facts, problem);
  } catch (error) {
    // A server that hides its settings must not prevent the start.
    log.warn({ err: error }, "checking the settings of Redis failed");
  }
};

const running = run({ live: () => true, ready }, [
  { name: "redis", start: startRedis, stop: redis.stop },
  { name: "redis watch", start: redisMonitor.start, stop: redisMonitor.stop },
  { name: "warehouse", start: warehouse.start, stop: warehouse.stop },
  { name: "bus", start: bus.start, stop: bus.stop },
  { name: "suppressions", start: gate.start, stop: gate.stop },
  runHolders.part,
  { name: "in flight", start: inFlight.start, stop: inFlight.stop },
  { name: "stable", start: stableMonitor.start, stop: stableMonitor.stop },
  { name: "moved dates", start: movedDates.start, stop: movedDates.stop },
  { name: "audit watch", start: auditMonitor.start, stop: auditMonitor.stop },
  ...jobs.flatMap(({ parts = [] }) => parts),
  createSweeping({ jobs, log }),
  { name: "schedules", start: schedules.start, stop: schedules.stop },
  ...boardParts,
  { name: "workers", start: workers.start, stop: workers.stop },
]);
