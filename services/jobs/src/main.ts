import { createRedis } from "@conversation-export/queue";
import {
  configOrExit,
  createHealthServer,
  createLogger,
  createMetrics,
  run,
} from "@conversation-export/runtime";
import { readConfig } from "./config.ts";
import { createRedisWatch } from "./redis-watch.ts";

const ASK_EVERY_MS = 1_000;

const config = configOrExit(readConfig);
const log = createLogger({ service: "jobs", level: config.logLevel });
const metrics = createMetrics({ service: "jobs" });
const redis = createRedis({ url: config.redisUrl, log });
const watch = createRedisWatch({ redis, everyMs: ASK_EVERY_MS });
metrics.gauge("redis_up", "1 when Redis answers", [], (gauge) => gauge.set(watch.answers() === true ? 1 : 0));
const health = createHealthServer({
  host: config.host,
  port: config.metricsPort,
  metrics,
  checks: { live: () => true, ready: watch.answers },
  log,
});

const startRedis = async (): Promise<void> => {
  await redis.start();
  // A server that hides its settings is no reason not to start.
  await redis.checkServer().catch((error: unknown) => log.warn({ err: error }, "Redis is not checked"));
};

run({
  log,
  deadlineMs: config.shutdownDeadlineMs,
  parts: [
    // First, so that a process that waits for Redis can be asked why.
    { name: "health", start: health.start, stop: health.stop },
    { name: "redis", start: startRedis, stop: redis.stop },
    { name: "redis watch", start: watch.start, stop: watch.stop },
  ],
});
