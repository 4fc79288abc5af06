import { setTimeout as sleep } from "node:timers/promises";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import type { Part } from "./run.ts";
import { spansAreSent } from "./spans.ts";
import type { TraceSettings } from "./trace-env.ts";
import type { ForeignTraces } from "./trace-sampler.ts";

const SAY_EVERY_MS = 600_000;

/**
 * Begins to record spans and gives the part that sends what is left when the process stops: the first of all, so that it
 * stops last. Without settings nothing is loaded and nothing recorded. There can be one in a process.
 * @param deps.foreign of the traces that others have begun
 * @param deps.stopWithinMs milliseconds
 * @param deps.exporter for tests; by default the receiver that the settings name
 */
export const startTracing = async (deps: {
  readonly settings: TraceSettings | null;
  readonly foreign: ForeignTraces;
  readonly stopWithinMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly exporter?: SpanExporter;
}): Promise<Part> => {
  const { settings, metrics, log, stopWithinMs } = deps;
  const spans = metrics.counter(
    "trace_spans_total",
    "Spans of traces that are sent, by what became of them",
    ["result"],
  );
  const idle = async (): Promise<void> => {};
  if (settings === null) return { name: "traces", start: idle, stop: idle };

  let saidAt = -SAY_EVERY_MS;
  const sayRarely = (error: Error | undefined): void => {
    const at = performance.now();
    if (at - saidAt < SAY_EVERY_MS) return;
    saidAt = at;
    log.warn({ error: error === undefined ? "unknown" : String(error) }, "spans are not taken");
  };
  // Loaded only here: a process without traces pays nothing for them.
  const { startTraceExport } = await import("./trace-export.ts");
  const sending = startTraceExport({
    settings,
    foreign: deps.foreign,
    exporter: deps.exporter,
    onFate: (count, result, error) => {
      spans.inc({ result }, count);
      if (result === "failed") sayRarely(error);
    },
  });
  spansAreSent(true);
  return {
    name: "traces",
    start: async () => {
      log.info({ ratio: settings.ratio }, "spans are sent");
    },
    stop: async () => {
      spansAreSent(false);
      // What is not taken in time is lost: nothing waits for it.
      await Promise.race([
        sending.shutdown().catch(() => undefined),
        sleep(stopWithinMs, undefined, { ref: false }),
      ]);
    },
  };
};
