import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { TraceSettings } from "../env/trace-env.ts";
import { createTraceSampler, type ForeignTraces } from "./trace-sampler.ts";

type SpanFate = (count: number, fate: "exported" | "failed" | "dropped", error?: Error) => void;

export const MAX_WAITING = 4_096;
const MAX_SENT = 512;
const SEND_EVERY_MS = 1_000;
const SEND_WITHIN_MS = 10_000;

/** Only one can run in a process. */
export const startTraceExport = (deps: {
  readonly settings: TraceSettings;
  readonly foreign: ForeignTraces;
  readonly onFate: SpanFate;
  readonly exporter?: SpanExporter | undefined;
}) => {
  const { settings, foreign, onFate } = deps;
  const exporter =
    deps.exporter ??
    new OTLPTraceExporter({
      url: settings.url,
      headers: { ...settings.headers },
      timeoutMillis: SEND_WITHIN_MS,
    });
  let waiting = 0;
  const counted: SpanExporter = {
    export: (spans, done) => {
      waiting -= spans.length;
      exporter.export(spans, (result) => {
        onFate(spans.length, result.code ? "failed" : "exported", result.error);
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counted,
    maxQueueSize: MAX_WAITING,
    maxExportBatchSize: MAX_SENT,
    scheduledDelayMillis: SEND_EVERY_MS,
    exportTimeoutMillis: SEND_WITHIN_MS + 1_000,
  });
  const provider = new TracerProvider({
    sampler: createTraceSampler({
      ratio: settings.ratio,
      foreign,
      now: () => performance.now(),
      random: Math.random,
    }),
    resource: resourceFromAttributes({ ...settings.attributes, "service.name": settings.serviceName }),
    spanProcessors: [
      {
        onStart: () => {},
        onEnd: (span: ReadableSpan) => {
          if (waiting >= MAX_WAITING) return onFate(1, "dropped");
          waiting += 1;
          batches.onEnd(span);
        },
        forceFlush: () => batches.forceFlush(),
        shutdown: () => batches.shutdown(),
      },
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return {
    /** Rejects when the receiver does not take the last spans. */
    shutdown: (): Promise<void> => {
      trace.disable();
      context.disable();
      return provider.shutdown();
    },
  };
};
