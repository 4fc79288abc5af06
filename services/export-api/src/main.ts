import { createProducer } from "@conversation-export/bus";
import {
  createIdempotencyStore,
  createJobClient,
  createKeyUses,
  createRateLimiter,
  createRedis,
  createSharedSlots,
} from "@conversation-export/queue";
import { createLoop, retry, startService } from "@conversation-export/runtime";
import {
  createCampaignStore,
  createReader,
  createRequestStore,
  createSession,
  createStableStore,
  createWatermarkStore,
} from "@conversation-export/warehouse";
import { createClientBound } from "./admission/client-bound.ts";
import { createAuthThrottle } from "./admission/auth-throttle.ts";
import { createKnownKeys } from "./admission/known-keys.ts";
import { readConfig } from "./config.ts";
import { createExportApp } from "./export-app.ts";
import { createExportMetrics } from "./export-metrics.ts";
import { createListener } from "./http/listener.ts";
import { createRateLimit, createRateLimitMetrics } from "./admission/rate-limit.ts";
import { createSlots } from "./admission/slots.ts";
import { createUsedKeys } from "./admission/used-keys.ts";
import { createTriggerPublisher } from "./operations/sms-trigger-publisher.ts";
import { createBufferSweep, youngCollector } from "./formats/buffer-sweep.ts";
import { createStableCache } from "./lists/stable-cache.ts";
import { createWatermarkCache } from "./lists/watermark.ts";

const LOOKUP_CONNECTIONS = 24;
/** Numbers of rows to scan and ends of steps. */
const SPARE_CONNECTIONS = 16;
const INTAKE_CONNECTIONS = 8;
/** About 4 MB of hashes. */
const MAX_KNOWN_KEYS = 50_000;
const USED_KEYS_PAUSE_MS = 60_000;
const KNOWN_KEYS_PAUSE_MS = 5_000;
const WATERMARK_MAX_AGE_MS = 2_000;
const STABLE_MAX_AGE_MS = 1_000;
const IDEMPOTENCY_SECONDS = 86_400;
const IDEMPOTENCY_LEASE_MS = 30_000;
const BODIES = { perProcess: 48, perClient: 16, maxWaiting: 256, maxWaitMs: 10_000 };
/** How long slots of a dead process stay taken. */
const BOUND_LEASE_MS = 30_000;
const KAFKA_STALL_MS = 5_000;
const SAMPLED_BY_CALLERS_PER_SECOND = 1;

const {
  config,
  log,
  metrics: registry,
  run,
} = await startService({
  service: "export-api",
  readConfig,
  // Any client may claim that a request is sampled.
  foreign: { perSecond: SAMPLED_BY_CALLERS_PER_SECOND },
});
const limitMetrics = createRateLimitMetrics(registry);
const onOwn = (): void => limitMetrics.limited.inc({ limit: "slots" });
const slots = { page: createSlots({ ...config.pages, onOwn }), body: createSlots({ ...BODIES, onOwn }) };
const metrics = createExportMetrics(registry, slots.page);
const application = "export-api";
// So that key look-ups do not wait behind pages.
const lookups = createSession({
  ...config.clickhouseLookup,
  application,
  maxConnections: LOOKUP_CONNECTIONS,
});
const pages = createSession({
  ...config.clickhouse,
  application,
  // A stream opens one step ahead.
  maxConnections: 2 * config.pages.perProcess + SPARE_CONNECTIONS,
});
const intake = createSession({ ...config.clickhouseIntake, application, maxConnections: INTAKE_CONNECTIONS });
const reader = createReader({ session: pages, lookups });
const knownKeys = createKnownKeys({
  load: () => reader.validKeys(MAX_KNOWN_KEYS),
  log,
  onLoad: (result) => metrics.keyLoads.inc({ result }),
});
const loadingKeys = createLoop({ turn: knownKeys.refresh, pauseMs: KNOWN_KEYS_PAUSE_MS, pauseFirst: true });
const redis = createRedis({ ...config.redis, log, onRefused: (error) => running.fatal(error) });
const usedKeys = createUsedKeys({ store: createKeyUses({ redis }), now: Date.now, log });
const savingUses = createLoop({ turn: usedKeys.save, pauseMs: USED_KEYS_PAUSE_MS, pauseFirst: true });
const watermarks = createWatermarkStore({ session: lookups });
const stable = createStableStore({ session: lookups });
const campaigns = createCampaignStore({ session: lookups, now: Date.now });
const requests = createRequestStore({
  session: intake,
  now: Date.now,
  idSecret: config.cursorSecret,
});
// While Redis is away, requests get 503 at once.
const jobs = createJobClient({ ...config.redis, log, connectWithinMs: 0 });
const publisher = createTriggerPublisher({
  producer: createProducer({ ...config.kafka, clientId: "conversation-export-api", log }),
  topic: config.smsTopic,
  stallMs: KAFKA_STALL_MS,
  log,
});
const boundOf = (what: "pages" | "streams", most: number, onUnshared: () => void) => {
  const slots = createSharedSlots({ redis, most, leaseMs: BOUND_LEASE_MS, log, onUnshared });
  return createClientBound({ what, most, slots, metrics: limitMetrics });
};
const clock = () => performance.now();
const app = createExportApp({
  ...config,
  reader,
  rateLimit: createRateLimit({
    limiter: createRateLimiter({ redis, log, onUnshared: () => limitMetrics.unshared.inc() }),
    defaults: config.rateLimits,
    metrics: limitMetrics,
  }),
  authThrottle: createAuthThrottle({
    windows: config.authFailureLimits,
    total: config.authLookupLimits,
    onFailure: (result) => metrics.authFailures.inc({ result }),
  }),
  knownKeys,
  usedKeys,
  slots,
  bounds: {
    // The request's rate limit already reports it.
    pages: boundOf("pages", config.maxClientPages, () => undefined),
    streams: boundOf("streams", config.maxStreams, () => limitMetrics.unshared.inc()),
  },
  watermark: createWatermarkCache({
    load: () => watermarks.load(),
    maxAgeMs: WATERMARK_MAX_AGE_MS,
    clock,
    now: Date.now,
  }),
  stable: createStableCache({ load: stable.load, maxAgeMs: STABLE_MAX_AGE_MS, clock }),
  compliance: {
    requests,
    jobs,
    caps: config.requestCaps,
    deadlineMs: config.erasureDeadlineMs,
    now: Date.now,
    onCapped: (cap) => limitMetrics.limited.inc({ limit: cap }),
  },
  campaigns: {
    campaigns,
    publisher,
    idempotency: createIdempotencyStore({
      redis,
      secrets: [config.cursorSecret, config.previousCursorSecret].filter((secret) => secret !== undefined),
      ttlSeconds: IDEMPOTENCY_SECONDS,
      leaseMs: IDEMPOTENCY_LEASE_MS,
    }),
  },
  log,
  metrics,
  clock,
  now: Date.now,
  sweep: createBufferSweep({ collect: youngCollector() }),
});
const listener = createListener({
  app,
  host: config.host,
  port: config.port,
  // The rest of the deadline is for the other parts.
  drainMs: config.shutdownDeadlineMs * 0.8,
  log,
});
const stopping = new AbortController();

const running = run({ live: () => true, ready: () => listener.ready() }, [
  { name: "redis", start: async () => redis.connect(), stop: () => redis.stop() },
  { name: "erasures", start: async () => jobs.start(), stop: () => jobs.stop() },
  { name: "bus", start: () => publisher.start(), stop: () => publisher.stop() },
  {
    name: "warehouse",
    start: () =>
      // Old pods go when this one is ready: all users are tried.
      retry(() => Promise.all([reader.ping(), requests.ping()]), {
        signal: stopping.signal,
        onRetry: (error, attempt) =>
          log.warn({ err: error, attempt }, "connecting to ClickHouse failed, retrying"),
      }),
    stop: () => {
      stopping.abort();
      return Promise.all([lookups, pages, intake].map((session) => session.close()));
    },
  },
  {
    name: "keys",
    start: async () => {
      await knownKeys.refresh();
      await loadingKeys.start();
    },
    stop: loadingKeys.stop,
  },
  {
    name: "key uses",
    start: savingUses.start,
    stop: async () => {
      await savingUses.stop();
      await usedKeys.save();
    },
  },
  { name: "http", start: () => listener.start(), stop: () => listener.stop() },
]);
