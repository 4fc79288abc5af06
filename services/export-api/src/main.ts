import { createProducer } from "@conversation-export/bus";
import {
  createErasureQueue,
  createIdempotencyStore,
  createRateLimiter,
  createRedis,
} from "@conversation-export/queue";
import {
  configOrExit,
  createHealthServer,
  createLogger,
  createMetrics,
  retry,
  run,
  startTracing,
} from "@conversation-export/runtime";
import {
  createCampaignStore,
  createReader,
  createRequestStore,
  createWatermarkReader,
} from "@conversation-export/warehouse";
import { createAuthThrottle } from "./auth-throttle.ts";
import { readConfig } from "./config.ts";
import { createExportApp } from "./export-app.ts";
import { createExportMetrics } from "./export-metrics.ts";
import { createListener } from "./listener.ts";
import { createRateLimit, createRateLimitMetrics } from "./rate-limit.ts";
import { createSlots } from "./slots.ts";
import { createTriggerPublisher } from "./sms-trigger-publisher.ts";
import { createWatermarkCache } from "./watermark.ts";

/** Beside the pages: keys, watermarks and the like. */
const LOOKUP_CONNECTIONS = 16;
const WATERMARK_MAX_AGE_MS = 2_000;
const IDEMPOTENCY_SECONDS = 86_400;
const IDEMPOTENCY_LEASE_MS = 30_000;
/** Bodies of up to 4 MB that are taken in at a time. */
const BODIES = { perProcess: 48, perClient: 16, maxWaiting: 256, maxWaitMs: 10_000 };
const KAFKA_STALL_MS = 5_000;
const SAMPLED_BY_CALLERS_PER_SECOND = 1;

const config = configOrExit(readConfig);
const log = createLogger({ service: "export-api", level: config.logLevel });
const registry = createMetrics({ service: "export-api" });
const traces = await startTracing({
  settings: config.traces,
  // Any customer may claim that a request is sampled.
  foreign: { perSecond: SAMPLED_BY_CALLERS_PER_SECOND },
  stopWithinMs: config.shutdownDeadlineMs / 15,
  metrics: registry,
  log,
});
const slots = { page: createSlots(config.pages), body: createSlots(BODIES) };
const metrics = createExportMetrics(registry, slots.page);
const limitMetrics = createRateLimitMetrics(registry);
const names = { ...config.clickhouse, application: "export-api", now: Date.now };

const reader = createReader({
  ...names,
  // A stream of lines reads one page ahead; look-ups never wait for pages.
  maxOpenConnections: 2 * config.pages.perProcess + LOOKUP_CONNECTIONS,
});
const watermarks = createWatermarkReader(names);
const campaigns = createCampaignStore(names);
const requests = createRequestStore({
  ...names,
  ...config.clickhouseIntake,
  idSecret: config.cursorSecret,
});
const redis = createRedis({ ...config.redis, log });
const erasures = createErasureQueue({ ...config.redis, log });
const publisher = createTriggerPublisher({
  producer: createProducer({ ...config.kafka, clientId: "conversation-export-api", log }),
  topic: config.smsTopic,
  stallMs: KAFKA_STALL_MS,
  log,
});
const clock = () => performance.now();
const app = createExportApp({
  reader,
  rateLimit: createRateLimit({
    limiter: createRateLimiter({ redis, log, onUnshared: () => limitMetrics.unshared.inc() }),
    defaults: config.rateLimits,
    metrics: limitMetrics,
  }),
  authThrottle: createAuthThrottle({ windows: config.authFailureLimits }),
  slots,
  watermark: createWatermarkCache({
    load: () => watermarks.load(),
    maxAgeMs: WATERMARK_MAX_AGE_MS,
    clock,
    now: Date.now,
  }),
  compliance: { requests, erasures },
  campaigns: {
    campaigns,
    publisher,
    idempotency: createIdempotencyStore({
      redis,
      ttlSeconds: IDEMPOTENCY_SECONDS,
      leaseMs: IDEMPOTENCY_LEASE_MS,
    }),
  },
  log,
  metrics,
  clock,
  now: Date.now,
  cursorSecret: config.cursorSecret,
  previousCursorSecret: config.previousCursorSecret,
  publicBaseUrl: config.publicBaseUrl,
  trustedProxies: config.trustedProxies,
  linkBounds: config.linkBounds,
  legacy: config.legacy,
  keyCacheMs: config.keyCacheMs,
  idleMs: config.idleMs,
  maxEventLoopDelayMs: config.maxEventLoopDelayMs,
});
const listener = createListener({
  app,
  host: config.host,
  port: config.port,
  // The rest of the deadline is for the other parts.
  drainMs: config.shutdownDeadlineMs * 0.8,
  log,
});
const health = createHealthServer({
  host: config.host,
  port: config.metricsPort,
  metrics: registry,
  checks: { live: () => true, ready: () => listener.ready() },
  log,
});
const stopping = new AbortController();

run({
  log,
  deadlineMs: config.shutdownDeadlineMs,
  parts: [
    traces,
    { name: "health", start: () => health.start(), stop: () => health.stop() },
    { name: "redis", start: async () => redis.connect(), stop: () => redis.stop() },
    { name: "erasures", start: async () => erasures.start(), stop: () => erasures.stop() },
    { name: "bus", start: () => publisher.start(), stop: () => publisher.stop() },
    {
      name: "warehouse",
      start: () =>
        retry(() => reader.ping(), {
          signal: stopping.signal,
          onRetry: (error, attempt) => log.warn({ err: error, attempt }, "warehouse not reached yet"),
        }),
      stop: () => {
        stopping.abort();
        return Promise.all([reader, watermarks, campaigns, requests].map((part) => part.close()));
      },
    },
    { name: "http", start: () => listener.start(), stop: () => listener.stop() },
  ],
});
