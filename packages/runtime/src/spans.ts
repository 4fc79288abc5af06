import {
  type Attributes,
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from "@opentelemetry/api";

export type { Span, SpanContext };

export type SpanOptions = {
  readonly kind?: keyof typeof SpanKind;
  /** Never content of records, personal data or values of queries. */
  readonly attributes?: Attributes;
  readonly links?: readonly SpanContext[];
};

const NAME = "conversation-export";
const PARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

let on = false;

/** For whoever sends spans; until then nothing is recorded. */
export const spansAreSent = (sent: boolean): void => {
  on = sent;
};

/** false: nothing is recorded in this process, so nothing need be prepared for it. */
export const isTracing = (): boolean => on;

const start = (name: string, parent: typeof ROOT_CONTEXT, options: SpanOptions): Span => {
  const { kind = "INTERNAL", attributes, links = [] } = options;
  return trace.getTracer(NAME).startSpan(
    name,
    {
      kind: SpanKind[kind],
      ...(attributes !== undefined && { attributes }),
      links: links.map((one) => ({ context: one })),
    },
    parent,
  );
};

/**
 * Begins a span, as a child of `parent` or, without one, as a trace of its own, which may not be sampled. It has to be
 * ended.
 */
export const startSpan = (name: string, parent: SpanContext | null, options: SpanOptions = {}): Span =>
  start(name, parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent), options);

/** The span that is recorded around this call. */
export const activeSpan = (): Span | undefined => {
  if (!on) return undefined;
  const span = trace.getActiveSpan();
  return span?.isRecording() === true ? span : undefined;
};

/** Runs `work` within a span, with whatever it calls and waits for. */
export const withinSpan = <T>(span: Span | undefined, work: () => T): T =>
  span === undefined ? work() : context.with(trace.setSpan(ROOT_CONTEXT, span), work);

/** The type of an error alone: its words may quote what must not leave. */
const typeOf = (error: unknown): string => {
  for (const name of ["causeName", "code"]) {
    const value: unknown = typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined;
    if (typeof value === "string") return value;
  }
  return error instanceof Error ? error.name : "unknown";
};

/** Marks a span as failed, by the type of the error. */
export const failSpan = (span: Span, error: unknown): void => {
  const type = typeof error === "string" ? error : typeOf(error);
  span.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR, message: type });
};

/** Runs `work` within a span and ends it with the work. */
export const runInSpan = async <T>(span: Span, work: () => T | Promise<T>): Promise<T> => {
  try {
    return await withinSpan(span, work);
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
};

/** Runs `work` in a child of the span around this call; without one that is recorded it only runs `work`. */
export const inSpan = <T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> => {
  const parent = activeSpan();
  return parent === undefined ? work() : runInSpan(startSpan(name, parent.spanContext(), options), work);
};

/** What the header `traceparent` says, and `tracestate` beside it; undefined when that is nothing. */
export const readTraceParent = (text: string, state?: string): SpanContext | undefined => {
  const [, version, traceId = "", spanId = "", flags = "", more] = PARENT.exec(text) ?? [];
  if (version === undefined || (version === "00" && more !== undefined)) return undefined;
  const found: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(state !== undefined && state !== "" && { traceState: createTraceState(state) }),
  };
  return isSpanContextValid(found) ? found : undefined;
};

export const isSampled = ({ traceFlags }: SpanContext): boolean => (traceFlags & TraceFlags.SAMPLED) !== 0;

/** The headers that carry a span on to others; none for no span, null. */
export const traceHeaders = (span: Span | null = activeSpan() ?? null): Record<string, string> => {
  if (span === null) return {};
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const flags = traceFlags.toString(16).padStart(2, "0");
  const state = traceState?.serialize() ?? "";
  return {
    traceparent: `00-${traceId}-${spanId}-${flags}`,
    ...(state !== "" && { tracestate: state }),
  };
};
