import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { finished } from "node:stream/promises";
import { recordSpans, runInSpan, startSpan } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "./connection.ts";
import { summaryOf } from "./traced-client.ts";

describe("summaryOf", () => {
  it.each([
    ["SELECT a FROM api_keys FINAL WHERE key_hash = {hash:String}", "SELECT", "api_keys"],
    ["WITH (SELECT 1 FROM\n (SELECT b FROM messages)) AS c SELECT c", "SELECT", "messages"],
    ["  insert into landing (a) FORMAT RowBinary", "INSERT", "landing"],
    ["ALTER TABLE handoffs DELETE WHERE a = 'x'", "ALTER", "handoffs"],
    ["SYSTEM STOP MERGES", "SYSTEM", undefined],
    ["", "STATEMENT", undefined],
  ])("tells of %s no more than what it does and to which table", (statement, operation, table) => {
    expect(summaryOf(statement)).toEqual({ operation, table });
  });
});

describe("a client of ClickHouse", () => {
  const asked: { headers: IncomingHttpHeaders; url: URL }[] = [];
  let server: Server;
  let url = "";

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push({ headers: request.headers, url: new URL(request.url ?? "", "http://x") });
      request.resume().once("end", () => {
        const refused = request.headers["x-refuse"] !== undefined || (request.url ?? "").includes("refuse");
        response.setHeader("x-clickhouse-summary", '{"written_rows":"2","written_bytes":"30"}');
        if (refused) response.setHeader("x-clickhouse-exception-code", "60");
        response.writeHead(refused ? 404 : 200);
        response.end(refused ? "Code: 60. DB::Exception: no 'ada@example.com'. (UNKNOWN_TABLE)" : "1\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://me:word@127.0.0.1:${(server.address() as AddressInfo).port}/db`;
  });
  afterAll(() => server.close());

  it("makes spans of its statements, hands them on, and does neither outside of one", async () => {
    const client = connect({ url, application: "test" });
    const once = async (query: string) => finished((await client.exec({ query })).stream.resume());
    await runInSpan(startSpan("off", null), () => once("SELECT 1"));
    expect(asked.at(-1)?.headers["traceparent"]).toBeUndefined();

    const recorded = await recordSpans(1);
    await once("SELECT 1 FROM outside");
    const outer = startSpan("outer", null);
    await runInSpan(outer, async () => {
      await once("INSERT INTO landing (a) FORMAT RowBinary");
      await client.insert({ table: "watermarks", values: [{ a: 1 }], format: "JSONEachRow" });
      await (await client.query({ query: "SELECT 1 FROM clients", format: "JSONEachRow" })).text();
      await client.command({ query: "OPTIMIZE TABLE handoffs" });
      await expect(client.exec({ query: "SELECT 'ada@example.com'", query_id: "refuse" })).rejects.toThrow(
        "no 'ada",
      );
    });
    await client.close();
    await recorded.stop();

    const spans = recorded.spans.filter(({ name }) => name !== "outer");
    expect(spans.map(({ name }) => name).sort()).toEqual(
      ["INSERT landing", "INSERT watermarks", "OPTIMIZE handoffs", "SELECT", "SELECT clients"].sort(),
    );
    for (const span of spans) {
      const { spanId, traceId } = span.spanContext();
      const id = span.attributes["clickhouse.query_id"];
      expect(span).toMatchObject({ kind: 2, parentSpanContext: { spanId: outer.spanContext().spanId } });
      expect(span.attributes).toMatchObject({ "db.system.name": "clickhouse", "db.namespace": "db" });
      const request = asked.find((one) => one.url.searchParams.get("query_id") === id);
      expect(request?.headers["traceparent"]).toBe(`00-${traceId}-${spanId}-01`);
    }
    const named = (name: string) => spans.find((span) => span.name === name);
    expect(named("INSERT landing")?.attributes).toMatchObject({
      "db.collection.name": "landing",
      "clickhouse.written_rows": 2,
      "clickhouse.written_bytes": 30,
    });
    expect(named("SELECT")).toMatchObject({ status: { code: 2 }, events: [] });
    expect(JSON.stringify(spans.map(({ attributes, status }) => [attributes, status]))).not.toContain("ada@");
  });
});
