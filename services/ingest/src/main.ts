import {
  type Consumer,
  createAdmin,
  createConsumer,
  createGroupProgress,
  createProducer,
} from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import {
  configOrExit,
  createHealthServer,
  createLogger,
  createMetrics,
  run,
} from "@conversation-export/runtime";
import { createWatermarkWriter, createWriter } from "@conversation-export/warehouse";
import { readConfig } from "./config.ts";
import { createIngestMetrics } from "./ingest-metrics.ts";
import { createLagWatch } from "./lag-watch.ts";
import { createPipeline } from "./pipeline.ts";
import { createSink } from "./sink.ts";
import { createWatermarkWatch } from "./watermark-watch.ts";

/** Longer than any rebalance: behind it the loop is dead. */
const LIVENESS_MS = 120_000;

const config = configOrExit(readConfig);
const log = createLogger({ service: "ingest", level: config.logLevel });
const registry = createMetrics({ service: "ingest" });
const metrics = createIngestMetrics(registry);
const connection = { brokers: config.brokers, clientId: "conversation-export-ingest", log };
const types = new Map<string, EventType>([
  [config.topics.conversations, "conversation.exported"],
  [config.topics.messages, "message.exported"],
  [config.topics.endUsers, "end_user.exported"],
]);
const topics = [...types.keys()];

const writer = createWriter({ url: config.clickhouseUrl, application: "conversation-export-ingest" });
// Compressed, since a letter that came compressed might be larger than the bus takes otherwise.
const producer = createProducer({ ...connection, compression: "zstd" });
const sink = createSink({ writer, producer, metrics, log, now: () => new Date() });
const pipeline = createPipeline({
  types,
  limits: config.limits,
  bufferMaxBytes: config.bufferMaxBytes,
  sink,
  consumer: () => consumer,
  metrics,
  registry,
  log,
  now: Date.now,
  onFatal: (error) => running.fatal(error),
});
const consumer: Consumer = createConsumer({
  ...connection,
  groupId: config.groupId,
  topics,
  sessionTimeoutMs: config.sessionTimeoutMs,
  // A message that waits in a batch holds its whole fetch response in memory: keep responses small.
  fetch: { maxBytesPerPartition: 4 * 1024 * 1024, maxBytes: 16 * 1024 * 1024 },
  metrics: registry,
  onMessages: pipeline.onMessages,
  onAssigned: pipeline.onAssigned,
  onRebalancing: pipeline.onRebalancing,
  onCrash: (error) => running.fatal(error),
});
const lagWatch = createLagWatch({
  admin: createAdmin(connection),
  groupId: config.groupId,
  topics,
  assigned: () => consumer.assigned(),
  intervalMs: config.lagIntervalMs,
  metrics,
  log,
});
const watermarks = createWatermarkWatch({
  progress: createGroupProgress({ ...connection, groupId: config.groupId }),
  store: createWatermarkWriter({ url: config.clickhouseUrl, application: "conversation-export-ingest" }),
  lists: new Map([
    [config.topics.conversations, "conversations"],
    [config.topics.messages, "messages"],
    [config.topics.endUsers, "end_users"],
  ]),
  intervalMs: config.watermarkIntervalMs,
  metrics,
  registry,
  log,
  now: Date.now,
});
const health = createHealthServer({
  host: config.host,
  port: config.metricsPort,
  metrics: registry,
  log,
  checks: {
    live: () => Date.now() - consumer.lastTick() < LIVENESS_MS || "the consumer loop does not tick",
    ready: () => {
      if (pipeline.isDraining()) return "draining";
      return consumer.isJoined() || "no member of the consumer group yet";
    },
  },
});

const running = run({
  log,
  deadlineMs: config.shutdownDeadlineMs,
  parts: [
    { name: "health", start: health.start, stop: health.stop },
    { name: "writer", start: async () => {}, stop: writer.close },
    { name: "producer", start: producer.start, stop: producer.stop },
    { name: "lag", start: lagWatch.start, stop: lagWatch.stop },
    { name: "watermarks", start: watermarks.start, stop: watermarks.stop },
    { name: "consumer", start: consumer.start, stop: consumer.stop },
    { name: "pipeline", start: async () => {}, stop: pipeline.drain },
  ],
});
