import { randomUUID } from "node:crypto";
import {
  createAdmin,
  createGroupProgress,
  createLetterReader,
  createProducer,
  createRangeReader,
} from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import {
  createExclusive,
  createJobBoard,
  createJobWorkers,
  createRedis,
  createRanSince,
  createSchedules,
  createWriterLeases,
  registerQueueMetrics,
  type RunnableJob,
  runJob,
  runSplitJob,
} from "@conversation-export/queue";
import {
  configOrExit,
  createHealthServer,
  createLogger,
  createMetrics,
  type Part,
  retry,
  run,
  startTracing,
} from "@conversation-export/runtime";
import { createSubjectHash, createSuppressionGate } from "@conversation-export/suppression";
import {
  BACKFILL_RUN,
  createCleanupStore,
  createClientStore,
  createErasureStore,
  createLandingStore,
  createPartCounts,
  createPartitionStore,
  createReconcileStore,
  createRecordReader,
  createReplayStore,
  createRequestCompletion,
  createRetentionStore,
  createRowReplacer,
  createSuppressionStore,
  createWindowStore,
  createWriter,
  FOUND_LATER,
} from "@conversation-export/warehouse";
import { createAddEvents } from "./add-events.ts";
import { createAnswerWatch } from "./answer-watch.ts";
import { createBackfill } from "./backfill.ts";
import { createBusClients, withBus } from "./bus-clients.ts";
import { createCompaction } from "./compaction.ts";
import { readConfig } from "./config.ts";
import { createCorrectRecords } from "./correct-records.ts";
import { createErasure } from "./erasure.ts";
import { createErasureDeadline } from "./erasure-deadline.ts";
import { createFolderStore } from "./folder-store.ts";
import { createIngestLag } from "./ingest-lag.ts";
import { createKafkaSource } from "./kafka-source.ts";
import { registerPartMetrics } from "./part-metrics.ts";
import { createPendingWrites } from "./pending-writes.ts";
import { createPreview } from "./preview-rows.ts";
import { createReconcile } from "./reconcile.ts";
import { createReplay } from "./replay.ts";
import { createRetention } from "./retention.ts";
import { createRowsLock } from "./rows-lock.ts";
import { createS3Store } from "./s3-store.ts";
import { schedulesOf } from "./schedules.ts";
import { withSetupTold } from "./setup-errors.ts";
import { createSourceOf } from "./source-of.ts";
import { createThrottle } from "./throttle.ts";
import { createUpkeepMetrics } from "./upkeep-metrics.ts";
import { createWindowsJob, registerWindowMetrics } from "./windows.ts";
import { createWritersConfirmed } from "./writers-confirmed.ts";

const ASK_EVERY_MS = 1_000;
const LOOK_FOR_OVERDUE_EVERY_MS = 15_000;
/** How long a comparison waits for ingest before a later attempt does. */
const RECONCILE_PATIENCE_MS = 60_000;
/** Of the time to stop in, what is left for the rest when jobs take theirs. */
const STOP_RESERVE_MS = 3_000;
const CLOCKS_DIFFER_MS = 60_000;

const config = configOrExit(readConfig);
const log = createLogger({ service: "jobs", level: config.logLevel });
const metrics = createMetrics({ service: "jobs" });
const traces = await startTracing({
  settings: config.traces,
  foreign: "all",
  stopWithinMs: config.shutdownDeadlineMs / 15,
  metrics,
  log,
});
const application = "conversation-export-jobs";

const redis = createRedis({ ...config.redis, log });
const redisWatch = createAnswerWatch({ name: "Redis", ping: redis.ping, everyMs: ASK_EVERY_MS });
metrics.gauge("redis_up", "1 when Redis answers", [], (gauge) =>
  gauge.set(redisWatch.answers() === true ? 1 : 0),
);
const writer = createWriter({ ...config.clickhouse, application });
const warehouseWatch = createAnswerWatch({ name: "ClickHouse", ping: writer.ping, everyMs: ASK_EVERY_MS });

const { topology } = config;
const windowSeconds = config.uploadWindow.seconds;
const now = (): number => Date.now() * 1000;
const windows = createWindowStore({ ...config.clickhouse, application, topology, windowSeconds });
const cleanup = createCleanupStore({ ...config.clickhouse, application, topology });
const partitions = createPartitionStore({ ...config.clickhouse, application, topology });
registerWindowMetrics(metrics, windows);

const { writerLeaseMs: leaseMs } = config;
const leases = createWriterLeases({ redis, leaseMs });
const suppressions = createSuppressionStore({ ...config.clickhouse, application });
/** What jobs write at the moment; an erasure waits for it. */
const pending = createPendingWrites({ foundStored: () => gate.foundStored() });
/** Every job that writes records asks it. */
const gate = createSuppressionGate({
  lease: leases,
  leaseMs,
  store: { ...suppressions, add: (rows) => suppressions.add(rows, FOUND_LATER) },
  secret: config.suppressionSecret,
  service: "jobs",
  now: () => performance.now(),
  settled: pending.settled,
  oldestUpload: pending.oldestUpload,
  onLost: (error) => running.fatal(error),
  metrics,
  log,
});
const requests = createRequestCompletion({ ...config.clickhouse, application, topology, now: Date.now });
const erasures = createErasureStore({ ...config.clickhouse, application, topology });
const deadline = createErasureDeadline({
  requests,
  deadlineMs: config.erasureDeadlineMs,
  everyMs: LOOK_FOR_OVERDUE_EVERY_MS,
  metrics,
  log,
  now: Date.now,
});

const types = new Map<string, EventType>([
  [config.topics.conversations, "conversation.exported"],
  [config.topics.messages, "message.exported"],
  [config.topics.endUsers, "end_user.exported"],
]);
const connection = { ...config.kafka, clientId: application, log };
const busReader = createRangeReader(connection);
const producer = createProducer({ ...connection, compression: "zstd" });
const groupProgress = createGroupProgress({ ...connection, groupId: config.groupId });
const admin = createAdmin(connection);
const bus = createBusClients({
  clients: [busReader, producer, groupProgress, admin],
  log,
  onFatal: (error) => running.fatal(error),
});
const letters = createLetterReader({ reader: busReader, topics: [...types.keys()] });
const clients = createClientStore({ ...config.clickhouse, application, now: Date.now });
const replays = createReplayStore({ ...config.clickhouse, application, now: Date.now });
const retention = createRetentionStore({ ...config.clickhouse, application, topology });
const reconciliation = createReconcileStore({
  ...config.clickhouse,
  application,
  topology,
  now: Date.now,
});
const upkeep = createUpkeepMetrics(metrics);

const warehouse = { ...config.clickhouse, application };
const partCounts = createPartCounts({ ...warehouse, topology });
registerPartMetrics(metrics, partCounts);
const landing = createLandingStore(warehouse);
const records = createRecordReader({ ...warehouse, topology });
const replacer = createRowReplacer({ ...warehouse, topology });
/** Under it single rows of records are removed, and the ledger of windows is changed. */
const exclusive = createRowsLock({
  exclusive: createExclusive({ redis, lockMs: config.lockMs }),
  replacer,
  log,
});
const ranSince = createRanSince({ redis });
const objects = createS3Store(config.s3);
const { maxTimeAheadMs } = config;
const backfill = createBackfill({
  reader: records,
  landing,
  windows,
  exclusive,
  correct: createCorrectRecords({ reader: records, replacer, gate, pending, now }),
  sourceOf: createSourceOf({
    kafka: createKafkaSource({
      reader: busReader,
      topics: {
        "conversation.exported": config.topics.conversations,
        "message.exported": config.topics.messages,
        "end_user.exported": config.topics.endUsers,
      },
      growsInTime: async (topic) =>
        (await admin.topicConfig(topic))["message.timestamp.type"] === "LogAppendTime",
      maxTimeAheadMs,
    }),
    folders: createFolderStore(),
    objects,
    now: Date.now,
  }),
  events: createAddEvents({
    writer,
    gate,
    pending,
    preview: createPreview({ reader: records, newRun: () => `${BACKFILL_RUN}${randomUUID()}` }),
    landingDays: config.landingDays,
    maxTimeAheadMs,
    now: Date.now,
  }),
  connected: bus.connected,
  throttle: createThrottle({
    lag: createIngestLag({ progress: groupProgress, topics: [...types.keys()], connected: bus.connected }),
    now: Date.now,
  }),
  maxTimeAheadMs,
  partEvents: config.backfillPartEvents,
  now: Date.now,
});

// Every job of the service; what runs by the clock stands in schedules.ts.
const jobs: readonly RunnableJob[] = [
  runSplitJob(backfill),
  runJob(
    withBus(
      bus,
      createReplay({
        topics: [...types.keys()],
        letters,
        reader: busReader,
        producer,
        store: replays,
        onReplayed: upkeep.replayed,
      }),
    ),
    { globalConcurrency: 1 },
  ),
  runJob(createRetention({ clients, store: retention, now: Date.now, onErased: upkeep.expired }), {
    globalConcurrency: 1,
  }),
  runJob(
    withBus(
      bus,
      createReconcile({
        topics: types,
        reader: busReader,
        letters,
        progress: groupProgress,
        store: reconciliation,
        clients,
        suppresses: gate.wouldSuppress,
        maxTimeAheadMs: config.maxTimeAheadMs,
        patienceMs: RECONCILE_PATIENCE_MS,
        now: Date.now,
        onCompared: upkeep.compared,
      }),
    ),
    { globalConcurrency: 1 },
  ),
  runJob(
    createErasure({
      requests,
      store: erasures,
      suppressions,
      writers: createWritersConfirmed({ leases, store: erasures, now: Date.now, log }),
      hash: createSubjectHash(config.suppressionSecret),
      leaseMs,
      now: Date.now,
    }),
    { globalConcurrency: 1 },
  ),
  runJob(
    createWindowsJob({
      store: windows,
      leases,
      exclusive,
      windowSeconds,
      graceSeconds: config.uploadWindow.graceSeconds,
      lookback: 3,
      now,
    }),
    { globalConcurrency: 1 },
  ),
  runJob(
    createCompaction({
      windows,
      cleanup,
      partitions,
      exclusive,
      droppedSince: (instant) => ranSince("retention", instant / 1_000 - CLOCKS_DIFFER_MS),
      windowSeconds,
      quietSeconds: config.quietSeconds,
      now,
    }),
    { globalConcurrency: 1 },
  ),
];

const workers = createJobWorkers({
  ...config.redis,
  jobs: jobs.map(withSetupTold),
  lockMs: config.lockMs,
  stopWithinMs: Math.max(config.shutdownDeadlineMs - STOP_RESERVE_MS, 500),
  metrics,
  log,
  onFatal: (error) => running.fatal(error),
});
const schedules = createSchedules({ ...config.redis, schedules: schedulesOf(config), metrics, log });
registerQueueMetrics({ redis, metrics, log, now: Date.now });

const board = config.board === null ? undefined : createJobBoard({ ...config.redis, log, ...config.board });
const boardParts: readonly Part[] =
  board === undefined ? [] : [{ name: "board", start: board.start, stop: board.stop }];

const ready = (): true | string => {
  const reasons = [redisWatch.answers(), warehouseWatch.answers(), workers.ready()].filter(
    (answer) => answer !== true,
  );
  return reasons.length === 0 || reasons.join("; ");
};
const health = createHealthServer({
  host: config.host,
  port: config.metricsPort,
  metrics,
  checks: { live: () => true, ready },
  mount: board,
  log,
});

const stopping = new AbortController();
const startRedis = async (): Promise<void> => {
  await redis.start();
  // A server that hides its settings is no reason not to start.
  await redis.checkServer().catch((error: unknown) => log.warn({ err: error }, "Redis is not checked"));
};
const startWarehouse = async (): Promise<void> => {
  await warehouseWatch.start();
  await retry(writer.ping, {
    signal: stopping.signal,
    onRetry: (error, attempt) => {
      if (attempt === 1) log.warn({ error: String(error) }, "ClickHouse is away, trying again");
    },
  });
  exclusive.start();
};
const stopWarehouse = async (): Promise<void> => {
  stopping.abort();
  exclusive.stop();
  await warehouseWatch.stop();
  await writer.close();
  objects.close();
  await Promise.all([landing.close(), records.close(), replacer.close()]);
  await Promise.all([suppressions.close(), requests.close(), erasures.close()]);
  await Promise.all([clients.close(), replays.close(), retention.close(), reconciliation.close()]);
  await Promise.all([windows.close(), cleanup.close(), partitions.close(), partCounts.close()]);
};

const running = run({
  log,
  deadlineMs: config.shutdownDeadlineMs,
  parts: [
    traces,
    // First, so that a process that waits for a server can be asked why.
    { name: "health", start: health.start, stop: health.stop },
    { name: "redis", start: startRedis, stop: redis.stop },
    { name: "redis watch", start: redisWatch.start, stop: redisWatch.stop },
    { name: "warehouse", start: startWarehouse, stop: stopWarehouse },
    { name: "bus", start: bus.start, stop: bus.stop },
    { name: "suppressions", start: gate.start, stop: gate.stop },
    { name: "erasure deadline", start: deadline.start, stop: deadline.stop },
    { name: "schedules", start: schedules.start, stop: schedules.stop },
    ...boardParts,
    { name: "workers", start: workers.start, stop: workers.stop },
  ],
});
