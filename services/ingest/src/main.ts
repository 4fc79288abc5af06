import { randomUUID } from "node:crypto";
import {
  type Consumer,
  createAdmin,
  createConsumer,
  createGroupProgress,
  createProducer,
} from "@conversation-export/bus";
import { listsByTopic, typesByTopic } from "@conversation-export/domain";
import { isTracing, startService } from "@conversation-export/runtime";
import { createSuppressionGate } from "@conversation-export/suppression";
import {
  createInFlight,
  createLandingStore,
  createSession,
  createCoordination,
  createSuppressionStore,
  createUnregisteredClientStore,
  createWatermarkStore,
  createWriter,
} from "@conversation-export/warehouse";
import { readConfig } from "./config.ts";
import { createClientMonitor } from "./monitor/client-monitor.ts";
import { createDeadLetterSink } from "./flush/dead-letter.ts";
import { createEventTraces } from "./event-traces.ts";
import { createIngestMetrics } from "./ingest-metrics.ts";
import { createKeepTrying } from "./flush/keep-trying.ts";
import { createLagMonitor } from "./monitor/lag-monitor.ts";
import { createLandingGap } from "./flush/landing-gap.ts";
import { createPipeline } from "./pipeline.ts";
import { createSink } from "./flush/sink.ts";
import { createWatermarkMonitor } from "./monitor/watermark-monitor.ts";

/** More than three topics use at once: no watermark waits for an INSERT. */
const WAREHOUSE_CONNECTIONS = 24;
/** Longer than any rebalance. */
const LIVENESS_MS = 120_000;

const {
  config,
  log,
  metrics: registry,
  run,
} = await startService({
  service: "ingest",
  readConfig,
  // Only our own systems write to the bus.
  foreign: "all",
});
const metrics = createIngestMetrics(registry);
const connection = { ...config.kafka, clientId: "conversation-export-ingest", log };
const types = typesByTopic(config.topics);
const topics = [...types.keys()];

const session = createSession({
  ...config.clickhouse,
  application: "conversation-export-ingest",
  maxConnections: WAREHOUSE_CONNECTIONS,
});
const writer = createWriter({ session });
const landing = createLandingStore({ session });
const gap = config.landingDays === null ? createLandingGap({ store: landing }) : null;
const coordination = createCoordination({ session });
const gate = createSuppressionGate({
  stamps: coordination,
  store: createSuppressionStore({ session }),
  secret: config.suppressionSecret,
  maxHeld: config.maxSuppressions,
  onLost: (error) => {
    pipeline.abort();
    running.fatal(error);
  },
  metrics: registry,
  log,
});
// A dead letter that came compressed may be too large uncompressed.
const producer = createProducer({ ...connection, compression: "zstd" });
const keepTrying = createKeepTrying({ metrics, log });
const inFlight = createInFlight({ coordination, writer: randomUUID(), log, now: () => performance.now() });
const sink = createSink({ writer, keepTrying, metrics });
const deadLetters = createDeadLetterSink({ producer, keepTrying, metrics, log, now: () => new Date() });
const clients = createClientMonitor({
  store: createUnregisteredClientStore({ session }),
  metrics,
  log,
  now: Date.now,
});
const pipeline = createPipeline({
  types,
  limits: config.limits,
  bufferMaxBytes: config.bufferMaxBytes,
  landingDays: config.landingDays,
  gate,
  clients,
  gap,
  sink,
  inFlight,
  keepTrying,
  deadLetters,
  traces: isTracing() ? createEventTraces() : null,
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
  metrics: registry,
  onMessages: pipeline.onMessages,
  onAssigned: pipeline.onAssigned,
  onRebalancing: pipeline.onRebalancing,
  onCrash: (error) => running.fatal(error),
});
const lagMonitor = createLagMonitor({
  admin: createAdmin(connection),
  groupId: config.groupId,
  topics,
  assigned: () => consumer.assigned(),
  intervalMs: config.lagIntervalMs,
  metrics,
  log,
});
const watermarks = createWatermarkMonitor({
  progress: createGroupProgress({ ...connection, groupId: config.groupId }),
  store: createWatermarkStore({ session }),
  lists: listsByTopic(config.topics),
  intervalMs: config.watermarkIntervalMs,
  metrics,
  registry,
  log,
  now: Date.now,
});

const checks = {
  live: () =>
    gate.isOpen() !== true ||
    Date.now() - consumer.lastTick() < LIVENESS_MS ||
    "the consumer loop does not tick",
  ready: () => {
    if (pipeline.isDraining()) return "draining";
    if (gate.isOpen() !== true) return gate.isOpen();
    return consumer.isJoined() || "no member of the consumer group yet";
  },
};
const running = run(checks, [
  { name: "warehouse", start: async () => {}, stop: session.close },
  { name: "producer", start: producer.start, stop: producer.stop },
  { name: "lag", start: lagMonitor.start, stop: lagMonitor.stop },
  { name: "watermarks", start: watermarks.start, stop: watermarks.stop },
  { name: "clients", start: clients.start, stop: clients.stop },
  { name: "suppressions", start: gate.start, stop: gate.stop },
  { name: "in flight", start: inFlight.start, stop: inFlight.stop },
  { name: "consumer", start: consumer.start, stop: consumer.stop },
  { name: "pipeline", start: async () => {}, stop: pipeline.drain },
]);
