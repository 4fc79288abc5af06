import {
  type Attributes,
  context,
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
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
  /** No content of records, personal data or query values. */
  readonly attributes?: Attributes;
  readonly links?: readonly SpanContext[];
};

const NAME = "conversation-export";
const PARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

export const isTracing = (): boolean => {
  const provider = trace.getTracerProvider();
  return provider instanceof ProxyTracerProvider && provider.getDelegateTracer(NAME) !== undefined;
};

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

/** The caller ends it. */
export const startSpan = (name: string, parent: SpanContext | null, options: SpanOptions = {}): Span =>
  start(name, parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent), options);

export const activeSpan = (): Span | undefined => {
  const span = trace.getActiveSpan();
  return span?.isRecording() === true ? span : undefined;
};

export const withinSpan = <T>(span: Span | undefined, work: () => T): T =>
  span === undefined ? work() : context.with(trace.setSpan(ROOT_CONTEXT, span), work);

/** Only the type: a message may quote content. */
const typeOf = (error: unknown): string => {
  for (const name of ["causeName", "code"]) {
    const value: unknown = typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined;
    if (typeof value === "string") return value;
  }
  return error instanceof Error ? error.name : "unknown";
};

export const failSpan = (span: Span, error: unknown): void => {
  const type = typeof error === "string" ? error : typeOf(error);
  span.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR, message: type });
};

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

export const inSpan = <T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> => {
  const parent = activeSpan();
  return parent === undefined ? work() : runInSpan(startSpan(name, parent.spanContext(), options), work);
};

/** W3C Trace Context. */
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
