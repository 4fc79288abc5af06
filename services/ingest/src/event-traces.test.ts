import type { BusMessage } from "@conversation-export/bus";
import { type Outcome, rejected } from "@conversation-export/domain";
import { inSpan, type RecordedSpan, recordSpans } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEventTraces, parentOf } from "./event-traces.ts";

const TRACE = (number: number): string => String(number).padStart(32, "a");
const parentText = (number: number, flags = "01"): string => `00-${TRACE(number)}-${"b".repeat(16)}-${flags}`;

const message = (headers: BusMessage["headers"], value = "{}", offset = 0): BusMessage => ({
  topic: "messages",
  partition: 2,
  offset,
  key: Buffer.from("acme:m"),
  value: Buffer.from(value),
  headers,
  timestamp: 0,
});

const ACCEPTED = { kind: "accepted" } as Outcome;

describe("parentOf", () => {
  it.each<[string, BusMessage]>([
    ["a header", message({ traceparent: Buffer.from(parentText(1)) })],
    ["an attribute in binary mode", message({ ce_traceparent: Buffer.from(parentText(1)) })],
    ["an attribute in structured mode", message({}, `{"traceparent":"${parentText(1)}","data":{}}`)],
    ["an attribute behind the id of a schema", message({}, `\0\0\0\0\x07{"traceparent":"${parentText(1)}"}`)],
    [
      "the header before the attribute",
      message({ traceparent: parentText(1) }, `{"traceparent":"${parentText(2)}"}`),
    ],
  ])("finds the sampled span in %s", (_, from) => {
    expect(parentOf(from)).toMatchObject({ traceId: TRACE(1), isRemote: true, traceFlags: 1 });
  });

  it.each<[string, BusMessage]>([
    ["no header", message({})],
    ["a trace that is not sampled", message({ traceparent: parentText(1, "00") })],
    ["an attribute of the record", message({}, `{"data":{"traceparent":"${parentText(1)}"}}`)],
    ["a header without a value", message({ traceparent: null })],
    ["a header that comes twice", message({ traceparent: [parentText(1), parentText(2)] })],
    ["another form", message({ traceparent: "x".repeat(55) })],
    ["a value that is no JSON", message({}, `"traceparent"${parentText(1)}`)],
    ["a value that is no object", message({}, '["traceparent", null]')],
    ["an attribute of another type", message({}, '{"traceparent":1}')],
  ])("finds none in %s", (_, from) => {
    expect(parentOf(from)).toBeUndefined();
  });
});

describe("createEventTraces", () => {
  let sent: RecordedSpan[] = [];
  let stop: () => Promise<unknown> = () => Promise.resolve();

  beforeAll(async () => {
    ({ spans: sent, stop } = await recordSpans(0));
  });
  afterAll(() => stop());

  const spansOf = async (number: number, count: number): Promise<RecordedSpan[]> => {
    const found = (): RecordedSpan[] => sent.filter((span) => span.spanContext().traceId === TRACE(number));
    await expect.poll(() => found().length).toBeGreaterThanOrEqual(count);
    return found();
  };

  it("shows the writing in the trace of the first stored event and links the others to it", async () => {
    const trace = createEventTraces()("messages");
    const [bad, first, second, late] = [10, 11, 12, 13].map((n) => message({ traceparent: parentText(n) }));
    if (bad === undefined || first === undefined || second === undefined || late === undefined)
      throw new Error();
    trace.take(bad, rejected("invalid_record", "ada@example.com"));
    trace.take(first, ACCEPTED);
    trace.take(message({}), ACCEPTED);
    trace.take(second, ACCEPTED);
    trace.take(late, ACCEPTED);
    expect(trace.headersOf(message({}))).toEqual({});
    await trace.flush({ records: 5, bytes: 77 }, async () => {
      await inSpan("insert", {}, () => Promise.resolve());
      trace.reject(late, "refused_by_warehouse");
      expect(trace.headersOf(late)["traceparent"]).toContain(`00-${TRACE(13)}-`);
    });
    const [insert, flush, event] = await spansOf(11, 3);
    expect(insert?.parentSpanContext?.spanId).toBe(flush?.spanContext().spanId);
    expect(flush).toMatchObject({
      name: "flush messages",
      attributes: { "messaging.batch.message_count": 5, "conversation_export.batch.bytes": 77 },
    });
    expect(flush?.parentSpanContext?.spanId).toBe(event?.spanContext().spanId);
    expect(flush?.links.map(({ context }) => context.traceId)).toEqual([TRACE(10), TRACE(12), TRACE(13)]);
    expect(event).toMatchObject({ kind: 4, parentSpanContext: { spanId: "b".repeat(16) }, links: [] });
    const [other] = await spansOf(12, 1);
    expect(other?.links.map(({ context }) => context.spanId)).toEqual([flush?.spanContext().spanId]);
    for (const [number, reason] of [
      [10, "invalid_record"],
      [13, "refused_by_warehouse"],
    ] as const) {
      expect((await spansOf(number, 1))[0]).toMatchObject({
        status: { code: 2 },
        events: [{ name: "rejected", attributes: { reason } }],
      });
    }
  });

  it("gives 128 events a span and counts the rest", async () => {
    const trace = createEventTraces()("messages");
    for (let offset = 0; offset < 130; offset += 1) {
      trace.take(message({ traceparent: parentText(20) }, "{}", offset), ACCEPTED);
    }
    await trace.flush({ records: 130, bytes: 1 }, () => Promise.resolve());
    const spans = await spansOf(20, 129);
    expect(spans).toHaveLength(129);
    const flush = spans.find(({ name }) => name === "flush messages");
    expect(flush?.links).toHaveLength(127);
    expect(flush?.attributes["conversation_export.batch.traced_events"]).toBe(130);
  });

  it("ends the spans of events that are not settled, as failed", async () => {
    const trace = createEventTraces()("messages");
    trace.take(message({ traceparent: parentText(30) }), ACCEPTED);
    trace.forget();
    expect((await spansOf(30, 1))[0]?.status.message).toBe("comes_again");
    trace.take(message({ traceparent: parentText(31) }), ACCEPTED);
    await expect(
      trace.flush({ records: 1, bytes: 1 }, () => Promise.reject(new RangeError())),
    ).rejects.toThrow(RangeError);
    expect((await spansOf(31, 2)).map(({ status }) => status.message)).toEqual(["RangeError", "RangeError"]);
  });

  it("leaves a batch without sampled events to chance, with what is done in it", async () => {
    const before = sent.length;
    const trace = createEventTraces()("messages");
    trace.take(message({ traceparent: parentText(40, "00") }), ACCEPTED);
    await trace.flush({ records: 1, bytes: 1 }, () => inSpan("insert", {}, () => Promise.resolve()));
    const marker = createEventTraces()("messages");
    marker.take(message({ traceparent: parentText(41) }), ACCEPTED);
    marker.forget();
    await spansOf(41, 1);
    expect(sent).toHaveLength(before + 1);
  });
});
