import { afterEach, describe, expect, it } from "vitest";
import {
  activeSpan,
  createLogger,
  createMetrics,
  inSpan,
  isTracing,
  readTraceParent,
  runInSpan,
  startSpan,
  traceHeaders,
  withinSpan,
} from "../index.ts";
import { MAX_WAITING } from "./trace-export.ts";
import { startTracing } from "./tracing.ts";

type Deps = Parameters<typeof startTracing>[0];
type Exporter = NonNullable<Deps["exporter"]>;
type Sent = Parameters<Exporter["export"]>[0];
type Answer = Parameters<Exporter["export"]>[1];

const SETTINGS = { url: "http://127.0.0.1:9", headers: {}, ratio: 1, serviceName: "test", attributes: {} };

const open: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop();
  // OpenTelemetry keeps one provider for the process.
  const { context, trace } = await import("@opentelemetry/api");
  context.disable();
  trace.disable();
});

const trace = async (
  answer: (spans: Sent, done: Answer) => void,
  options: Partial<Pick<Deps, "settings" | "stopWithinMs">> = {},
) => {
  const lines: string[] = [];
  const sent: Sent[number][] = [];
  const metrics = createMetrics({ service: "test" });
  const log = createLogger({
    service: "test",
    level: "info",
    destination: { write: (line) => lines.push(line) },
  });
  const part = await startTracing({
    settings: SETTINGS,
    foreign: "all",
    stopWithinMs: 5_000,
    metrics,
    log,
    exporter: {
      export: (spans, done) => {
        sent.push(...spans);
        answer(spans, done);
      },
      shutdown: () => Promise.resolve(),
    },
    ...options,
  });
  open.push(part);
  const counted = async (result: string): Promise<number> =>
    Number(
      new RegExp(`conversation_export_trace_spans_total\\{.*result="${result}".*\\} (\\d+)`).exec(
        await metrics.text(),
      )?.[1] ?? 0,
    );
  return { part, sent, lines, log, counted };
};

const take = (_: Sent, done: Answer): void => done({ code: 0 });

describe("startTracing", () => {
  it("does nothing without settings", async () => {
    const { part, sent } = await trace(take, { settings: null });
    expect(isTracing()).toBe(false);
    const ran = await runInSpan(startSpan("a", null), () =>
      inSpan("b", {}, () => Promise.resolve(activeSpan())),
    );
    expect(ran).toBeUndefined();
    expect(traceHeaders()).toEqual({});
    await part.stop();
    expect(sent).toEqual([]);
  });

  it("sends spans with their parents, also across what is waited for", async () => {
    const { part, sent, counted } = await trace(take);
    const from = readTraceParent(`00-${"a".repeat(32)}-${"b".repeat(16)}-01`, "vendor=1") ?? null;
    const headers = await runInSpan(startSpan("outer", from, { kind: "SERVER" }), async () => {
      await Promise.resolve();
      return inSpan("inner", {}, () => Promise.resolve(traceHeaders()));
    });
    await part.stop();
    const [inner, outer] = sent;
    expect(outer).toMatchObject({ name: "outer", kind: 1, parentSpanContext: { spanId: "b".repeat(16) } });
    expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
    expect(outer?.resource.attributes["service.name"]).toBe("test");
    expect(headers).toEqual({
      traceparent: `00-${"a".repeat(32)}-${inner?.spanContext().spanId}-01`,
      tracestate: "vendor=1",
    });
    expect(await counted("exported")).toBe(2);
  });

  it("reports an error by its type alone", async () => {
    const { part, sent } = await trace(take);
    const error = Object.assign(new Error("ada@example.com"), { code: "away" });
    await expect(runInSpan(startSpan("a", null), () => Promise.reject(error))).rejects.toBe(error);
    await part.stop();
    expect(sent[0]).toMatchObject({
      status: { code: 2, message: "away" },
      attributes: { "error.type": "away" },
      events: [],
    });
  });

  it("names the span in lines of the log that are written within it", async () => {
    const { log, lines } = await trace(take);
    const span = startSpan("a", null);
    withinSpan(span, () => log.info("within"));
    log.info("without");
    span.end();
    const [within, without] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(within).toMatchObject({
      trace_id: span.spanContext().traceId,
      span_id: span.spanContext().spanId,
      msg: "within",
    });
    expect(Object.keys(without ?? {})).not.toContain("trace_id");
  });

  it("counts what is not taken, and says so once", async () => {
    const { part, counted, lines } = await trace((_, done) => done({ code: 1, error: new Error("refused") }));
    for (let index = 0; index < 600; index += 1) startSpan("a", null).end();
    await expect.poll(() => counted("failed")).toBe(600);
    await part.stop();
    expect(lines.filter((line) => line.includes("sending spans failed"))).toHaveLength(1);
  });

  it("drops what does not fit while the receiver hangs, counts it, and stops in time", async () => {
    const { part, counted } = await trace(() => {}, { stopWithinMs: 50 });
    for (let index = 0; index < MAX_WAITING + 600; index += 1) startSpan("a", null).end();
    expect(await counted("dropped")).toBeGreaterThanOrEqual(600 - 512);
    const before = performance.now();
    await part.stop();
    expect(performance.now() - before).toBeLessThan(2_000);
    expect(isTracing()).toBe(false);
  });
});

describe("readTraceParent", () => {
  const [id, span] = ["a".repeat(32), "b".repeat(16)];

  it.each([
    [`00-${id}-${span}-01`, 1],
    [`00-${id}-${span}-00`, 0],
    [`00-${id}-${span}-03`, 1],
    [`cc-${id}-${span}-01-more`, 1],
  ])("takes %s", (text, traceFlags) => {
    expect(readTraceParent(text)).toEqual({ traceId: id, spanId: span, traceFlags, isRemote: true });
  });

  it.each([
    "",
    `ff-${id}-${span}-01`,
    `00-${id}-${span}-01-more`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${id}-${"0".repeat(16)}-01`,
    `00-${id.toUpperCase()}-${span}-01`,
    `00-${id}-${span}`,
  ])("takes %s for nothing", (text) => {
    expect(readTraceParent(text)).toBeUndefined();
  });
});
