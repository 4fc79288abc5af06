import type { BusMessage } from "@conversation-export/bus";
import { headerText, type Outcome, withoutSchemaPrefix } from "@conversation-export/domain";
import {
  failSpan,
  inSpan,
  isSampled,
  readTraceParent,
  runInSpan,
  type Span,
  type SpanContext,
  startSpan,
  traceHeaders,
} from "@conversation-export/runtime";

export type BatchTrace = {
  take(message: BusMessage, outcome: Outcome): void;
  reject(message: BusMessage, reason: string): void;
  ignore(message: BusMessage, reason: string): void;
  /** Continue the event's trace in another message. */
  headersOf(message: BusMessage): Readonly<Record<string, string>>;
  /** The events' spans end with it. */
  flush(
    size: { readonly records: number; readonly bytes: number },
    write: () => Promise<void>,
  ): Promise<void>;
  /** The events come again. */
  forget(): void;
};

export type EventTraces = (topic: string) => BatchTrace;

const MAX_EVENTS = 128;
const MIN_PARENT_LENGTH = 55;
const STRUCTURED = '"traceparent"';
const SAMPLED = /^"traceparent"\s*:\s*"[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f][13579bdf]/;
const MAX_ATTRIBUTE_BYTES = 120;
const COMES_AGAIN = "comes_again";

const SYSTEM = { "messaging.system": "kafka" } as const;

const textOf = (header: BusMessage["headers"][string]): string | undefined => headerText(header) ?? undefined;

const structuredOf = (value: Buffer | null): { traceparent?: unknown; tracestate?: unknown } => {
  const at = value?.indexOf(STRUCTURED) ?? -1;
  if (value === null || at < 0) return {};
  // Parsing is expensive, so only for sampled traces.
  if (!SAMPLED.test(value.toString("latin1", at, at + MAX_ATTRIBUTE_BYTES))) return {};
  try {
    return (JSON.parse(withoutSchemaPrefix(value).toString("utf8")) ?? {}) as { traceparent?: unknown };
  } catch {
    return {};
  }
};

export const parentOf = ({ headers, value }: BusMessage): SpanContext | undefined => {
  let parent = textOf(headers["traceparent"]) ?? textOf(headers["ce_traceparent"]);
  let state = textOf(headers["tracestate"]) ?? textOf(headers["ce_tracestate"]);
  if (parent === undefined) {
    const { traceparent, tracestate } = structuredOf(value);
    if (typeof traceparent === "string") parent = traceparent;
    if (typeof tracestate === "string") state = tracestate;
  }
  if (parent === undefined || parent.length < MIN_PARENT_LENGTH) return undefined;
  const context = readTraceParent(parent, state);
  return context !== undefined && isSampled(context) ? context : undefined;
};

export const createEventTraces = (): EventTraces => (topic) => {
  const spans = new Map<BusMessage, Span>();
  const notStored = new Set<Span>();
  let more = 0;
  const destination = { ...SYSTEM, "messaging.destination.name": topic };

  const end = (failure?: unknown): void => {
    for (const span of spans.values()) {
      if (failure !== undefined) failSpan(span, failure);
      span.end();
    }
    spans.clear();
    notStored.clear();
  };

  const leaveOut =
    (event: "rejected" | "ignored") =>
    (message: BusMessage, reason: string): void => {
      const span = spans.get(message);
      if (span === undefined) return;
      span.addEvent(event, { reason });
      if (event === "rejected") failSpan(span, reason);
      notStored.add(span);
    };
  const reject = leaveOut("rejected");
  const ignore = leaveOut("ignored");

  return {
    take: (message, outcome) => {
      const parent = parentOf(message);
      if (parent === undefined) return;
      if (spans.size === MAX_EVENTS) {
        more += 1;
        return;
      }
      const span = startSpan(`process ${topic}`, parent, {
        kind: "CONSUMER",
        attributes: {
          ...destination,
          "messaging.operation.name": "process",
          "messaging.operation.type": "process",
          "messaging.destination.partition.id": String(message.partition),
          "messaging.kafka.offset": message.offset,
          "messaging.message.body.size": message.value?.length ?? 0,
        },
      });
      spans.set(message, span);
      if (outcome.kind === "rejected") reject(message, outcome.reason);
      if (outcome.kind === "ignored") ignore(message, outcome.reason);
    },
    reject,
    ignore,
    headersOf: (message) => traceHeaders(spans.get(message) ?? null),
    flush: async ({ records, bytes }, write) => {
      const events = [...spans.values()];
      // The inserts show in one event's trace; the others link to it.
      const first = events.find((span) => !notStored.has(span)) ?? events[0];
      const others = events.filter((span) => span !== first);
      const flush = startSpan(`flush ${topic}`, first?.spanContext() ?? null, {
        attributes: {
          ...destination,
          "messaging.batch.message_count": records,
          "conversation_export.batch.bytes": bytes,
          "conversation_export.batch.traced_events": spans.size + more,
        },
        links: others.map((span) => span.spanContext()),
      });
      for (const span of others) span.addLink({ context: flush.spanContext() });
      try {
        await runInSpan(flush, write);
      } catch (error) {
        end(error);
        throw error;
      }
      end();
    },
    forget: () => end(COMES_AGAIN),
  };
};

export const sendInSpan = (topic: string, messages: number, send: () => Promise<void>): Promise<void> =>
  inSpan(
    `send ${topic}`,
    {
      kind: "PRODUCER",
      attributes: {
        ...SYSTEM,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic,
        "messaging.batch.message_count": messages,
      },
    },
    send,
  );
