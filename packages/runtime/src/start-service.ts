import type { Settings } from "./env/settings.ts";
import type { processSettings } from "./env/shared-settings.ts";
import { ConfigError } from "./errors.ts";
import { createHealthServer, type HealthChecks } from "./health.ts";
import { createLogger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { type Part, run, type Running } from "./run.ts";
import type { ForeignTraces } from "./trace/trace-sampler.ts";
import { startTracing } from "./trace/tracing.ts";

type ProcessSettings = Settings<ReturnType<typeof processSettings>>;

const configOrExit = <Config>(read: () => Config): Config => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
};

/** Exits with 1 for a wrong configuration; the service begins with `run`. */
export const startService = async <Config extends ProcessSettings>(deps: {
  /** In log lines and metrics. */
  readonly service: string;
  readonly readConfig: () => Config;
  readonly foreign: ForeignTraces;
}) => {
  const { service, readConfig, foreign } = deps;
  const config = configOrExit(readConfig);
  const { host, metricsPort: port, shutdownDeadlineMs: deadlineMs } = config;
  const log = createLogger({ service, level: config.logLevel });
  const metrics = createMetrics({ service, withProcess: true });
  const traces = await startTracing({
    settings: config.traces,
    foreign,
    stopWithinMs: deadlineMs / 15,
    metrics,
    log,
  });
  return {
    config,
    log,
    metrics,
    run: (checks: HealthChecks, parts: readonly Part[]): Running => {
      const health = createHealthServer({ host, port, metrics, checks, log });
      // Before the others, so that a waiting process can be asked why.
      return run({ log, deadlineMs, parts: [traces, health, ...parts] });
    },
  };
};
