import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { createLogger } from "../logger.ts";
import { createMetrics } from "../metrics.ts";
import { startTracing } from "./tracing.ts";

export type RecordedSpan = ReadableSpan;

/** For tests, once in a process; spans arrive up to a second late. */
export const recordSpans = async (
  ratio: number,
): Promise<{ readonly spans: RecordedSpan[]; stop(): Promise<unknown> }> => {
  const spans: RecordedSpan[] = [];
  const part = await startTracing({
    settings: { url: "http://127.0.0.1:9", headers: {}, ratio, serviceName: "test", attributes: {} },
    foreign: "all",
    stopWithinMs: 1_000,
    metrics: createMetrics({ service: "test" }),
    log: createLogger({ service: "test", level: "silent" }),
    exporter: {
      export: (ended, done) => {
        spans.push(...ended);
        done({ code: 0 });
      },
      shutdown: () => Promise.resolve(),
    },
  });
  return { spans, stop: part.stop };
};
