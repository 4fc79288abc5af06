import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { handMade } from "../sample/hand-made.ts";
import { readTopics } from "../system/read-topics.ts";
import { readMetric } from "../system/metrics-text.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { startSystem, type System } from "../system/system.ts";
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from "../outside/trace-receiver.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

const TIME = "2026-10-02T00:00:00Z";
const PATH = "/v2/export/conversations?created_since=2026-01-01T00:00:00Z&created_to=2027-01-01T00:00:00Z";
/** Port 9 (discard): nothing listens there. */
const NOWHERE = "http://127.0.0.1:9";
/** Each span reads the clock when it begins and counts from there. */
const CLOCKS_DIFFER_NS = 5_000_000n;
const CONTENT = "nothing-of-this-may-leave";

type Caller = { readonly traceId: string; readonly spanId: string; readonly traceparent: string };

const caller = (flags = "01"): Caller => {
  const traceId = randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` };
};

describe("traces", () => {
  let system: System;
  let receiver: TraceReceiver;
  let lost: Awaited<ReturnType<System["anotherApi"]>>;
  let off: typeof lost;
  let ingest: ServiceProcess;
  let key = "";

  beforeAll(async () => {
    receiver = await startTraceReceiver();
    system = await startSystem("test-traces");
    const sent = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=a%20b" };
    const never = { ...sent, OTEL_TRACES_SAMPLER_ARG: "0" };
    [ingest, , , lost, off] = await Promise.all([
      system.service("ingest", { ...never, BATCH_MAX_AGE_MS: "300" }),
      system.service("export-api", never),
      system.service("jobs", { ...sent, OTEL_TRACES_SAMPLER_ARG: "1", WINDOWS_INTERVAL_SECONDS: "1" }),
      system.anotherApi({ OTEL_EXPORTER_OTLP_ENDPOINT: NOWHERE, OTEL_TRACES_SAMPLER_ARG: "1" }),
      system.anotherApi({ OTEL_TRACES_SAMPLER_ARG: "1" }),
    ]);
    key = await system.key("acme");
  });
  afterAll(async () => {
    await system?.stop();
    await receiver?.stop();
  });

  const spansOf = ({ traceId }: Pick<Caller, "traceId">): ReceivedSpan[] =>
    receiver.spans.filter((span) => span.traceId === traceId);

  const awaitSpan = async (of: Pick<Caller, "traceId">, name: string): Promise<ReceivedSpan> => {
    const find = (): ReceivedSpan | undefined => spansOf(of).find((span) => span.name === name);
    await until(`the span ${name} arrives`, 20_000, () => find() !== undefined);
    const found = find();
    if (found === undefined) throw new Error(name);
    return found;
  };

  const ask = async (api: string, headers: Record<string, string> = {}): Promise<number> => {
    const answer = await fetch(api + PATH, { headers: { authorization: `Bearer ${key}`, ...headers } });
    await answer.arrayBuffer();
    return answer.status;
  };

  const logOf = (file: string): Record<string, unknown>[] =>
    readFileSync(join(system.logFolder, file), "utf8")
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("lead from the event to the rows, and to the dead letter", async () => {
    expect(await ask(lost.apiUrl), "while no receiver answers").toBe(200);
    const [first, second, unsampled, bad] = [caller(), caller(), caller("00"), caller()];
    const event = (id: string, headers: Record<string, string>, data?: string) => {
      const record = { _id: id, date_created: TIME, inquiry_summary: CONTENT };
      return handMade({
        kind: "conversation",
        client: "acme",
        id,
        time: TIME,
        headers,
        data: data ?? JSON.stringify(record),
      });
    };
    const structured = event("b", {});
    const value = (structured.value?.toString() ?? "").replace(
      "{",
      `{"traceparent":"${second.traceparent}",`,
    );
    await system.producer.send(
      "conversations",
      [
        event("d", { traceparent: bad.traceparent }, `"${CONTENT}"`),
        event("a", { traceparent: first.traceparent, tracestate: "vendor=1" }),
        { ...structured, value: Buffer.from(value) },
        event("c", { traceparent: unsampled.traceparent }),
      ].map(({ key: id, value: bytes, headers }) => ({ key: id, value: bytes, headers, partition: 1 })),
    );

    const event1 = await awaitSpan(first, "process conversations");
    expect(event1).toMatchObject({
      service: "conversation-export-ingest",
      kind: 5,
      parentId: first.spanId,
      traceState: "vendor=1",
      status: 0,
      attributes: {
        "messaging.system": "kafka",
        "messaging.destination.name": "conversations",
        "messaging.destination.partition.id": "1",
        "messaging.kafka.offset": 1,
      },
    });
    const flush = await awaitSpan(first, "flush conversations");
    expect(flush).toMatchObject({
      parentId: event1.spanId,
      attributes: { "messaging.batch.message_count": 4, "conversation_export.batch.traced_events": 3 },
    });
    for (const table of ["landing", "conversation_updates", "conversations"]) {
      expect(await awaitSpan(first, `INSERT ${table}`)).toMatchObject({
        kind: 3,
        parentId: flush.spanId,
        attributes: {
          "db.system.name": "clickhouse",
          "db.operation.name": "INSERT",
          "db.collection.name": table,
          "clickhouse.written_rows": 3,
        },
      });
    }
    expect(event1.endNs + CLOCKS_DIFFER_NS).toBeGreaterThanOrEqual(flush.endNs);

    const event2 = await awaitSpan(second, "process conversations");
    const deadLetter = await awaitSpan(bad, "process conversations");
    const to = ({ traceId, spanId }: ReceivedSpan) => ({ traceId, spanId });
    expect(event2).toMatchObject({ parentId: second.spanId, links: [to(flush)] });
    expect(flush.links).toEqual([to(deadLetter), to(event2)]);
    expect(deadLetter).toMatchObject({ status: 2, attributes: { "error.type": "invalid_envelope" } });
    expect(await awaitSpan(first, "send conversations.dead-letter")).toMatchObject({ kind: 4 });
    expect(spansOf(unsampled)).toEqual([]);

    const [dead] = await readTopics(system.connection, ["conversations.dead-letter"], 1);
    expect(String(dead?.headers["traceparent"])).toBe(`00-${bad.traceId}-${deadLetter.spanId}-01`);
  });

  it("lead from a request to its queries", async () => {
    const from = caller();
    expect(await ask(system.apiUrl, { traceparent: from.traceparent, tracestate: `x=${CONTENT}` })).toBe(200);
    const server = await awaitSpan(from, "GET /api/v2/export/conversations");
    expect(server).toMatchObject({
      service: "conversation-export-export-api",
      kind: 2,
      parentId: from.spanId,
      traceState: "",
      attributes: {
        "http.request.method": "GET",
        "http.route": "/api/v2/export/conversations",
        "http.response.status_code": 200,
        "conversation_export.client_id": "acme",
        "conversation_export.rows": 3,
        "conversation_export.page_end": "complete",
      },
    });
    expect(server.events.map(({ name }) => name)).toEqual(["first_byte"]);
    const lookUp = await awaitSpan(from, "authenticate");
    expect((await awaitSpan(from, "SELECT api_keys")).parentId).toBe(lookUp.spanId);
    const query = await awaitSpan(from, "SELECT conversations");
    expect(query).toMatchObject({ kind: 3, parentId: server.spanId, status: 0 });
    expect(spansOf(from).map(({ name }) => name)).toEqual(expect.arrayContaining(["rate limit", "slot"]));
    const line = logOf("export-api.log").find(({ trace_id }) => trace_id === from.traceId);
    expect(line).toMatchObject({ msg: "request", span_id: server.spanId });

    const migrator = system.stack.clickhouse.url("migrator");
    await runSql(migrator, "SYSTEM FLUSH LOGS");
    const below = await runSql(
      migrator,
      `SELECT leftPad(lower(hex(parent_span_id)), 16, '0') FROM system.opentelemetry_span_log
        WHERE operation_name = 'HTTPHandler' AND lower(hex(trace_id)) = {id:String}`,
      { id: from.traceId },
    );
    expect(below.split("\n")).toContain(query.spanId);
  });

  it("of callers are bounded", async () => {
    const callers = Array.from({ length: 12 }, () => caller());
    await Promise.all(callers.map(({ traceparent }) => ask(system.apiUrl, { traceparent })));
    expect(await ask(system.apiUrl)).toBe(200);
    const after = caller();
    await until("another one is recorded", 10_000, async () => {
      await ask(system.apiUrl, { traceparent: after.traceparent });
      return spansOf(after).length > 0;
    });
    expect(callers.filter((one) => spansOf(one).length > 0).length).toBeLessThan(4);
  });

  it("show an attempt of a job with its statements", async () => {
    const attempt = (): ReceivedSpan | undefined => receiver.spans.find(({ name }) => name === "job windows");
    await until("a job has run", 20_000, () => attempt() !== undefined);
    const job = attempt();
    if (job === undefined) throw new Error("no span");
    expect(job).toMatchObject({ service: "conversation-export-jobs", parentId: "" });
    expect(job.attributes["conversation_export.job.outcome"]).toBe("completed");
    const statements = spansOf(job).filter(({ kind }) => kind === 3);
    expect(statements.length).toBeGreaterThan(0);
    expect(new Set(statements.map(({ attributes }) => attributes["db.system.name"]))).toEqual(
      new Set(["clickhouse"]),
    );
  });

  it("hold no content, no keys and no statements", () => {
    const all = JSON.stringify(receiver.spans, (_, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    expect(receiver.spans.length).toBeGreaterThan(20);
    for (const text of [CONTENT, key, " WHERE ", "acme:a"]) expect(all).not.toContain(text);
    expect(new Set(receiver.requests.map(({ path }) => path))).toEqual(new Set(["/v1/traces"]));
    expect(new Set(receiver.requests.map(({ headers }) => headers["x-tenant"]))).toEqual(new Set(["a b"]));
  });

  it("are not needed: without a receiver the service works and counts, without an address it does not try", async () => {
    expect(await ask(lost.apiUrl)).toBe(200);
    const { metricsUrl } = lost.process;
    const failed = () =>
      readMetric(metricsUrl, "conversation_export_trace_spans_total", { result: "failed" });
    await until("what is lost is counted", 20_000, async () => ((await failed()) ?? 0) >= 5);
    expect(
      await readMetric(metricsUrl, "conversation_export_trace_spans_total", { result: "exported" }),
    ).toBeNull();
    const before = performance.now();
    await lost.process.kill("SIGTERM");
    expect(await lost.process.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - before).toBeLessThan(8_000);

    expect(await ask(off.apiUrl, { traceparent: caller().traceparent })).toBe(200);
    expect(await readMetric(off.process.metricsUrl, "conversation_export_trace_spans_total")).toBeNull();
    expect(
      await readMetric(ingest.metricsUrl, "conversation_export_trace_spans_total", { result: "exported" }),
    ).toBeGreaterThan(5);
  });
});
