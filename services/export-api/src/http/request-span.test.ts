import { setImmediate } from "node:timers/promises";
import { activeSpan, type RecordedSpan, recordSpans, ServiceError } from "@conversation-export/runtime";
import type { Reader } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AUTHORIZED, createListReader, createTestApp } from "./app.fixture.ts";

const PATH = "/api/v2/export/conversations";
const TRACE = (number: number): string => String(number).padStart(32, "c");
const parentText = (number: number): string => `00-${TRACE(number)}-${"d".repeat(16)}-01`;

describe("the span of a request", () => {
  let sent: RecordedSpan[] = [];
  let stop: () => Promise<unknown> = () => Promise.resolve();

  beforeAll(async () => {
    ({ spans: sent, stop } = await recordSpans(0));
  });
  afterAll(() => stop());

  const ask = async (reader: Reader, number: number, url: string, headers: Record<string, string>) => {
    const { app, logLines } = createTestApp(reader);
    await app.inject({ url, headers: { host: "h", traceparent: parentText(number), ...headers } });
    await setImmediate();
    const spans = (): RecordedSpan[] => sent.filter((span) => span.spanContext().traceId === TRACE(number));
    const find = (): RecordedSpan | undefined => spans().find(({ name }) => name.startsWith("GET"));
    await expect.poll(() => find()).toBeDefined();
    const server = find();
    if (server === undefined) throw new Error("no span");
    return { server, spans: spans(), logLines };
  };

  it("has the route and what came of it, and is around what is done", async () => {
    const { reader } = createListReader({});
    const within: unknown[] = [];
    const asked: Reader = {
      ...reader,
      conversationsByCreation: (query) => {
        within.push(activeSpan()?.spanContext().spanId);
        return reader.conversationsByCreation(query);
      },
    };
    const { server, spans, logLines } = await ask(
      asked,
      1,
      `${PATH}?created_since=2024-03-01T00:00:00Z`,
      AUTHORIZED,
    );
    const { spanId } = server.spanContext();
    expect(server).toMatchObject({
      name: `GET ${PATH}`,
      parentSpanContext: { spanId: "d".repeat(16) },
      status: { code: 0 },
      attributes: {
        "http.route": PATH,
        "http.response.status_code": 200,
        "conversation_export.client_id": "acme",
        "conversation_export.page_end": "complete",
      },
    });
    expect(JSON.stringify(server.attributes)).not.toMatch(/created_since|2024/);
    expect(within).toEqual([spanId]);
    expect(spans.map(({ name }) => name)).toEqual(["authenticate", "rate limit", "slot", server.name]);
    expect(logLines.find(({ msg }) => msg === "request")).toMatchObject({
      trace_id: TRACE(1),
      span_id: spanId,
    });
  });

  it("failed when the answer is our fault, with the id that the caller gets", async () => {
    const trouble = new ServiceError("warehouse_unavailable", "no host x", { retryable: true });
    const { reader } = createListReader({});
    const { server, logLines } = await ask(
      { ...reader, conversationsByCreation: () => Promise.reject(trouble) },
      2,
      `${PATH}?created_since=2024-03-01T00:00:00Z`,
      AUTHORIZED,
    );
    const line = logLines.find(({ msg }) => msg === "request failed");
    expect(line).toMatchObject({ trace_id: TRACE(2) });
    expect(server).toMatchObject({
      status: { code: 2, message: "503" },
      attributes: { "conversation_export.error_id": line?.["errorId"] },
    });
  });

  it("has no failure and no address when the caller is at fault", async () => {
    const { reader } = createListReader({});
    const { server } = await ask(reader, 3, "/nowhere/secret-path", {});
    expect(server).toMatchObject({ name: "GET", status: { code: 0 } });
    expect(server.attributes["http.response.status_code"]).toBe(404);
    expect(JSON.stringify(server.attributes)).not.toContain("secret-path");
  });

  it("takes nothing else from a caller", async () => {
    const { reader } = createListReader({});
    const { server } = await ask(reader, 4, PATH, { tracestate: "a=b", baggage: "c=d" });
    expect(server.spanContext().traceState).toBeUndefined();
    expect(server.attributes["http.response.status_code"]).toBe(401);
  });
});
