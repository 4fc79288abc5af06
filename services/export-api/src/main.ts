import {
  configOrExit,
  createHealthServer,
  createLogger,
  createMetrics,
  retry,
  run,
} from "@conversation-export/runtime";
import { createReader } from "@conversation-export/warehouse";
import { createApp } from "./app.ts";
import { readConfig } from "./config.ts";
import { createExportMetrics } from "./export-metrics.ts";
import { createListener } from "./listener.ts";

const config = configOrExit(readConfig);
const log = createLogger({ service: "export-api", level: config.logLevel });
const metrics = createMetrics({ service: "export-api" });
const reader = createReader({ url: config.clickhouseUrl, application: "export-api" });
const app = createApp({
  reader,
  log,
  metrics: createExportMetrics(metrics),
  clock: () => performance.now(),
  cursorSecret: config.cursorSecret,
  previousCursorSecret: config.previousCursorSecret,
  publicBaseUrl: config.publicBaseUrl,
  linkBounds: config.linkBounds,
  keyCacheMs: config.keyCacheMs,
  idleMs: config.idleMs,
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
  metrics,
  checks: { live: () => true, ready: () => listener.ready() },
  log,
});
const stopping = new AbortController();

run({
  log,
  deadlineMs: config.shutdownDeadlineMs,
  parts: [
    { name: "health", start: () => health.start(), stop: () => health.stop() },
    {
      name: "warehouse",
      start: () =>
        retry(() => reader.ping(), {
          signal: stopping.signal,
          onRetry: (error, attempt) => log.warn({ err: error, attempt }, "warehouse not reached yet"),
        }),
      stop: () => {
        stopping.abort();
        return reader.close();
      },
    },
    { name: "http", start: () => listener.start(), stop: () => listener.stop() },
  ],
});
