import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { recordSpans, runInSpan, startSpan } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSession } from "./session.ts";
import { summaryOf } from "./statement-spans.ts";

describe("summaryOf", () => {
  it.each([
    ["SELECT a FROM api_keys FINAL WHERE key_hash = {hash:String}", "SELECT", "api_keys"],
    ["WITH (SELECT 1 FROM\n (SELECT b FROM messages)) AS c SELECT c", "SELECT", "messages"],
    ["  insert into landing (a) FORMAT RowBinary", "INSERT", "landing"],
    ["ALTER TABLE handoffs DELETE WHERE a = 'x'", "ALTER", "handoffs"],
    ["SYSTEM STOP MERGES", "SYSTEM", undefined],
    ["", "STATEMENT", undefined],
  ])("says of %s no more than what it does and to which table", (statement, operation, table) => {
    expect(summaryOf(statement)).toEqual({ operation, table });
  });
});

describe("a session", () => {
  const asked: { headers: IncomingHttpHeaders; url: URL }[] = [];
  let server: Server;
  let url = "";

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push({ headers: request.headers, url: new URL(request.url ?? "", "http://x") });
      request.resume().once("end", () => {
        if ((request.url ?? "").includes("stall")) {
          response.writeHead(200);
          response.write("[1]\n");
          return;
        }
        const refused = (request.url ?? "").includes("refuse");
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

  it("records and passes on spans of statements within a span, but none outside of one", async () => {
    const session = createSession({ url, application: "test" });
    const read = async (query: string) => text(await session.stream("test.read", query));
    await runInSpan(startSpan("off", null), () => read("SELECT 1"));
    expect(asked.at(-1)?.headers["traceparent"]).toBeUndefined();

    const recorded = await recordSpans(1);
    await read("SELECT 1 FROM outside");
    const outer = startSpan("outer", null);
    await runInSpan(outer, async () => {
      await session.upload("test.upload", "INSERT INTO landing (a) FORMAT RowBinary", Buffer.from("a"));
      await session.insert("test.insert", { table: "watermarks", rows: [{ a: 1 }] });
      await session.rows("test.rows", "SELECT 1 FROM clients");
      await session.command("test.command", "OPTIMIZE TABLE handoffs");
      const refused = session.stream("test.refuse", "SELECT 'ada@example.com'");
      await expect(refused).rejects.toThrow("warehouse_unavailable: UNKNOWN_TABLE");
    });
    await session.close();
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
      expect(request?.url.searchParams.get("log_comment")).toBe(
        span.attributes["conversation_export.statement"],
      );
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

  it("prefers the settings of a statement to those of its session", async () => {
    const session = createSession({ url, application: "test" });
    const view = session.with({ settings: { async_insert: 0, max_threads: 1 } });
    await view.command("test.settings", "OPTIMIZE TABLE handoffs", {
      parameters: { run: "a" },
      settings: { max_threads: 2, log_comment: "not after 5" },
    });
    await session.close();
    expect(Object.fromEntries(asked.at(-1)?.url.searchParams ?? [])).toMatchObject({
      database: "db",
      param_run: "a",
      async_insert: "0",
      max_threads: "2",
      log_comment: "not after 5",
    });
  });

  it("has rows written at once, unless they may wait for others", async () => {
    const session = createSession({ url, application: "test" });
    const insert = async (settings = {}) => {
      await session.insert("test.insert", { table: "watermarks", rows: [{ a: 1 }] }, { settings });
      return asked.at(-1)?.url.searchParams.get("async_insert");
    };
    expect(await insert()).toBe("0");
    expect(await insert({ async_insert: 1 })).toBe("1");
    await session.close();
  });

  it("leaves out a newer setting that the server does not know, for reads and writes, and sends it no more", async () => {
    const sent: string[][] = [];
    const older = createServer((request, response) => {
      const settings = [...new URL(request.url ?? "", "http://x").searchParams.keys()].filter((name) =>
        /^(query_plan|max_bytes|max_threads)/.test(name),
      );
      sent.push(settings);
      const unknown = settings.find((name) => name !== "max_threads");
      request.resume().once("end", () => {
        if (unknown !== undefined) response.setHeader("x-clickhouse-exception-code", "115");
        response.writeHead(unknown === undefined ? 200 : 404);
        response.end(
          unknown === undefined
            ? "1\n"
            : `Code: 115. DB::Exception: Unknown setting '${unknown}': Maybe you meant … (UNKNOWN_SETTING) (version 25.8)`,
        );
      });
    });
    await new Promise<void>((resolve) => older.listen(0, "127.0.0.1", resolve));
    const { port } = older.address() as AddressInfo;
    const session = createSession({ url: `http://me:word@127.0.0.1:${port}/db`, application: "test" });
    const settings = {
      max_threads: 1,
      query_plan_optimize_lazy_final: 0,
      max_bytes_ratio_before_external_join: 0,
    };
    try {
      expect(await text(await session.stream("test.read", "SELECT 1", { settings }))).toBe("1\n");
      expect(sent).toHaveLength(3);
      await session.upload("test.upload", "INSERT INTO a FORMAT TSV", Buffer.from("1"), { settings });
      expect(sent.slice(2)).toEqual([["max_threads"], ["max_threads"]]);
    } finally {
      await session.close();
      older.close();
    }
  });

  it("gives up an answer that stops midway, and frees its connection", async () => {
    const session = createSession({ url, application: "test", maxConnections: 1 });
    const late = session.with({ timeoutMs: 50 });
    const first = async () => {
      for await (const chunk of late.chunks<number[]>("test.stall", "SELECT 1")) expect(chunk).toEqual([[1]]);
    };
    const stalled = { code: "warehouse_unavailable", retryable: true };
    await expect(late.rows("test.stall", "SELECT 1")).rejects.toMatchObject(stalled);
    await expect(first()).rejects.toMatchObject(stalled);
    await expect(late.upload("test.stall", "INSERT INTO a", Buffer.from("a"))).rejects.toMatchObject(stalled);
    // A busy machine begins an answer later than after 50 ms.
    const read = text(await session.stream("test.stall", "SELECT 1", { timeoutMs: 1_000 }));
    await expect(read).rejects.toMatchObject({ code: "ECONNRESET" });
    // The only connection is free again.
    expect(await text(await session.stream("test.read", "SELECT 1"))).toBe("1\n");
    await expect(late.command("test.stall", "OPTIMIZE TABLE a")).rejects.toMatchObject(stalled);

    const stop = new AbortController();
    const reason = new Error("stopped");
    const rows = session.rows("test.stall", "SELECT 1", { signal: stop.signal });
    setTimeout(() => stop.abort(reason), 20);
    await expect(rows).rejects.toBe(reason);
    await session.close();
  });

  it("sends a SELECT once more when the connection that was kept is reset, and nothing else", async () => {
    const reported: string[] = [];
    const used = new Set<Socket>();
    let resets = 0;
    const closing = createServer((request, response) => {
      const query = new URL(request.url ?? "", "http://x").searchParams.get("query") ?? "";
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.once("end", () => {
        reported.push(/SELECT|INSERT|OPTIMIZE/.exec(query + body)?.[0] ?? "");
        if (used.has(request.socket) || resets > 0) {
          resets -= 1;
          request.socket.resetAndDestroy();
          return;
        }
        used.add(request.socket);
        response.end("[1]\n");
      });
    });
    await once(closing.listen(0, "127.0.0.1"), "listening");
    const address = `http://127.0.0.1:${(closing.address() as AddressInfo).port}/db`;
    const session = createSession({ url: address, application: "test", maxConnections: 1 });
    const keep = async (): Promise<void> => {
      await text(await session.stream("test.read", "SELECT 1"));
      reported.length = 0;
    };
    const reads = [
      async () => text(await session.stream("test.read", "SELECT 1")),
      () => session.rows("test.rows", "SELECT 1"),
      async () => {
        const all = [];
        for await (const rows of session.chunks("test.chunks", "SELECT 1")) all.push(rows);
        return all;
      },
    ];
    for (const read of reads) {
      await keep();
      expect(JSON.stringify(await read())).toContain("1");
      expect(reported).toEqual(["SELECT", "SELECT"]);
    }
    const reset = { code: "warehouse_unavailable", causeName: "ECONNRESET", retryable: true };
    const writes = [
      () => session.upload("test.upload", "INSERT INTO a", Buffer.from("a")),
      () => session.insert("test.insert", { table: "a", rows: [{ a: 1 }] }),
      () => session.command("test.command", "OPTIMIZE TABLE a"),
    ];
    for (const write of writes) {
      await keep();
      await expect(write()).rejects.toMatchObject(reset);
      expect(reported).toHaveLength(1);
    }
    // A server that resets every connection.
    resets = 2;
    reported.length = 0;
    await expect(session.rows("test.rows", "SELECT 1")).rejects.toMatchObject(reset);
    expect(reported).toEqual(["SELECT", "SELECT"]);
    await session.close();
    closing.closeAllConnections();
    closing.close();
  });

  it("throws the reason of an aborted signal, and a retryable error for a late answer", async () => {
    const silent = createServer(() => {});
    await once(silent.listen(0, "127.0.0.1"), "listening");
    const address = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/db`;
    const session = createSession({ url: address, application: "test" });
    try {
      await expect(session.with({ timeoutMs: 20 }).ping()).rejects.toMatchObject({
        code: "warehouse_unavailable",
        causeName: "TimeoutError",
        retryable: true,
      });
      const stop = new AbortController();
      const reason = new Error("stopped");
      const rows = session.rows("test.rows", "SELECT 1", { signal: stop.signal });
      stop.abort(reason);
      await expect(rows).rejects.toBe(reason);
      await expect(session.rows("test.rows", "SELECT 1", { signal: stop.signal })).rejects.toBe(reason);
    } finally {
      await session.close();
      silent.closeAllConnections();
      silent.close();
    }
  });
});

describe("a session of several servers", () => {
  it("sends a statement to all shards even if one fails, and names that one", async () => {
    const reported: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        reported.push(Buffer.concat(chunks).toString());
        response.end();
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const good = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gone = "http://127.0.0.1:1";
    const session = createSession({
      url: `${good}/db`,
      application: "test",
      topology: { cluster: "main", shards: [gone, good] },
    });
    try {
      await expect(session.commandEverywhere("test.stop", "SYSTEM STOP MERGES")).rejects.toMatchObject({
        code: "warehouse_unavailable",
        causeName: "ECONNREFUSED",
        retryable: true,
        message: expect.stringContaining(gone),
      });
      expect(reported).toEqual([expect.stringContaining("SYSTEM STOP MERGES")]);
    } finally {
      await session.close();
      server.closeAllConnections();
      server.close();
    }
  });
});
