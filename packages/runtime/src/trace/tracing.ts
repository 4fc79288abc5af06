import type { SpanExporter } from "@opentelemetry/sdk-trace";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { Part } from "../run.ts";
import type { TraceSettings } from "../env/trace-env.ts";
import type { ForeignTraces } from "./trace-sampler.ts";
import { within } from "../within.ts";

const SAY_EVERY_MS = 600_000;

/** Once for each process; the returned part must start first. */
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
    "conversation_export_trace_spans_total",
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
    log.warn({ error: error === undefined ? "unknown" : String(error) }, "sending spans failed");
  };
  // Without traces a process does not load OpenTelemetry's SDK.
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
  return {
    name: "traces",
    start: async () => {
      log.info({ ratio: settings.ratio }, "spans are sent");
    },
    stop: async () => {
      const sent = sending.shutdown().catch(() => undefined);
      await within(sent, stopWithinMs, () => undefined);
    },
  };
};
