import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { formatTimestampZ, parseTimestamp } from "@conversation-export/domain";
import { createKey, ServiceError } from "@conversation-export/runtime";
import type { Reader } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { createAuthThrottle } from "../admission/auth-throttle.ts";
import {
  AUTHORIZED,
  CLIENT,
  createListReader,
  createTestApp,
  KEY,
  pageOf,
  type StoredRecord,
  WATERMARK,
} from "./app.fixture.ts";

const START = parseTimestamp("2024-03-01T00:00:00Z") ?? 0;
const CONVERSATIONS = "/api/v2/export/conversations";
const MESSAGES = "/api/v2/export/messages";
const SINCE = "created_since=2024-03-01T00:00:00Z";

const records = (count: number, clientId = "acme"): StoredRecord[] =>
  Array.from({ length: count }, (_, index) => ({
    clientId,
    created: START + index,
    updated: START + 1_000_000 - index,
    id: `r${String(index).padStart(6, "0")}`,
    conversationId: `c${index % 3}`,
  }));

type PageBody = { data: StoredRecord[]; meta: { next_page_uri: string | null } };
type ErrorBody = { errors: { type: string; message: string; details: string | null }[] };

const setUp = (options: Parameters<typeof createListReader>[0] = {}, overrides = {}) => {
  const list = createListReader(options);
  const test = createTestApp(list.reader, overrides);
  const get = (url: string, headers: Record<string, string> = AUTHORIZED, method: "GET" | "HEAD" = "GET") =>
    test.app.inject({ method, url, headers: { host: "export.example", ...headers } });
  return { ...list, ...test, get };
};

/** One page of a reader that does something else. */
const askWith = async (own: Partial<Reader>, headers: Record<string, string> = {}) => {
  const { app, logLines } = createTestApp({ ...createListReader({}).reader, ...own });
  const response = await app.inject({
    url: `${CONVERSATIONS}?${SINCE}`,
    headers: { ...AUTHORIZED, host: "h", ...headers },
  });
  return { response, logLines };
};
const away = new ServiceError("warehouse_unavailable", "away", { retryable: true });

describe("a page", () => {
  it("is the envelope around the records, with headers that keep it private", async () => {
    const { get } = setUp({ records: records(3) });
    const response = await get(`${CONVERSATIONS}?${SINCE}`);
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("application/json");
    expect(response.headers["cache-control"]).toBe("private, no-store");
    expect(response.headers["x-content-type-options"]).toBe("nosniff");
    expect(response.headers["x-export-watermark"]).toBe(WATERMARK);
    expect(response.json<PageBody>()).toEqual({ data: records(3), meta: { next_page_uri: null } });
  });

  it("asks the query that the filter needs", async () => {
    const { get, queries } = setUp({ records: records(10) });
    const updated = await get(`${CONVERSATIONS}?updated_since=2024-03-01T00:00:00.999995Z`);
    expect(updated.json<PageBody>().data.map(({ id }) => id)).toEqual(
      [5, 4, 3, 2, 1, 0].map((n) => `r00000${n}`),
    );
    const messages = await get(`${MESSAGES}?${SINCE}&conversation_id=c1`);
    expect(messages.json<PageBody>().data.map(({ id }) => id)).toEqual(["r000001", "r000004", "r000007"]);
    expect(queries[1]).toMatchObject({
      clientId: "acme",
      since: START,
      to: START + 7 * 86_400_000_000,
      pageSize: 10_000,
      wholeTies: false,
      conversationId: "c1",
    });
    expect(queries[0]).not.toHaveProperty("conversationId");
    expect(queries[0]).not.toHaveProperty("after");
  });

  it("is empty without a query when the upper bound is not above the lower", async () => {
    const { get, queries } = setUp({ records: records(5) });
    for (const to of ["2024-03-01T00:00:00Z", "2020-01-01T00:00:00Z"]) {
      const response = await get(`${CONVERSATIONS}?${SINCE}&created_to=${to}`);
      expect(response.statusCode).toBe(200);
      expect(response.body).toBe('{"data":[],"meta":{"next_page_uri":null}}');
    }
    expect(queries).toEqual([]);
  });

  it("belongs to the client of the key", async () => {
    const other = createKey().key;
    const { get } = setUp({
      records: [...records(2), ...records(3, "other")],
      clients: { [KEY]: CLIENT, [other]: { ...CLIENT, clientId: "other" } },
    });
    const url = `${CONVERSATIONS}?${SINCE}`;
    expect((await get(url)).json<PageBody>().data).toEqual(records(2));
    const theirs = await get(url, { authorization: `Bearer ${other}` });
    expect(theirs.json<PageBody>().data).toEqual(records(3, "other"));
  });

  it("answers HEAD with the status and headers of GET, and cancels the query", async () => {
    const body = new Readable({ read() {} });
    const reader: Reader = {
      ...createListReader({}).reader,
      conversationsByCreation: () => Promise.resolve(pageOf(body, { date: START, id: "a" })),
    };
    const { app } = createTestApp(reader);
    const headers = { ...AUTHORIZED, host: "export.example", "x-request-id": "one" };
    const url = `${CONVERSATIONS}?${SINCE}`;
    const head = await app.inject({ method: "HEAD", url, headers });
    expect(head.statusCode).toBe(200);
    expect(head.body).toBe("");
    expect(body.destroyed).toBe(true);
    reader.conversationsByCreation = () =>
      Promise.resolve(pageOf(Readable.from([]), { date: START, id: "a" }));
    const get = await app.inject({ method: "GET", url, headers });
    for (const name of ["content-type", "cache-control", "x-request-id"]) {
      expect(head.headers[name], name).toBe(get.headers[name]);
      expect(head.headers[name], name).toBeDefined();
    }
  });

  it("answers HEAD of an invalid request with its status", async () => {
    const { get } = setUp();
    const response = await get(CONVERSATIONS, AUTHORIZED, "HEAD");
    expect([response.statusCode, response.body]).toEqual([400, ""]);
  });
});

describe("lines", () => {
  const lines = { ...AUTHORIZED, accept: "application/x-ndjson" };

  it("are the whole window, one record each, and a trailer", async () => {
    const { get, queries, lineQueries } = setUp({ records: records(2_500) });
    const bounds = `created_since=${formatTimestampZ(START)}&created_to=${formatTimestampZ(START + 2_500)}`;
    const response = await get(`${CONVERSATIONS}?${bounds}&page_size=100`, lines);
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("application/x-ndjson");
    const all = response.body.split("\n");
    expect(all.pop()).toBe("");
    expect(JSON.parse(all.pop() ?? "")).toEqual({ trailer: { count: 2_500, watermark: WATERMARK } });
    expect(all.map((line) => JSON.parse(line) as unknown)).toEqual(records(2_500));
    expect(queries).toEqual([]);
    expect(lineQueries).toMatchObject([{ filter: "created", since: START, to: START + 2_500 }]);
  });

  it("by update, of one conversation, or behind a cursor, are the lines of that window", async () => {
    const { get, queries, lineQueries } = setUp({ records: records(300) });
    const updated = await get(`${CONVERSATIONS}?updated_since=2024-03-01T00:00:00Z`, lines);
    expect(updated.body.split("\n")).toHaveLength(302);
    const conversation = await get(`${MESSAGES}?${SINCE}&conversation_id=c1`, lines);
    expect(conversation.body.split("\n")).toHaveLength(102);
    const page = await get(`${MESSAGES}?${SINCE}&page_size=100`);
    const link = new URL(page.json<PageBody>().meta.next_page_uri ?? "");
    const rest = await get(link.pathname + link.search, lines);
    expect(rest.body.split("\n")).toHaveLength(202);
    expect(queries).toHaveLength(1);
    expect(lineQueries).toMatchObject([
      { filter: "updated" },
      { conversationId: "c1" },
      { after: { date: START + 99 } },
    ]);
  });

  it("of an empty window are the trailer alone", async () => {
    const { get } = setUp();
    const narrow = `${SINCE}&created_to=2024-03-01T00:00:00.001Z`;
    for (const query of [narrow, `${SINCE}&created_to=2020-01-01T00:00:00Z`]) {
      const response = await get(`${MESSAGES}?${query}`, lines);
      expect(response.body).toBe(`{"trailer":{"count":0,"watermark":"${WATERMARK}"}}\n`);
    }
  });

  it("are given only to those who like them at least as much as JSON", async () => {
    const { get } = setUp();
    const typeFor = async (accept: string) =>
      (await get(`${MESSAGES}?${SINCE}`, { ...AUTHORIZED, accept })).headers["content-type"];
    expect(await typeFor("application/x-ndjson, application/json;q=0.5")).toBe("application/x-ndjson");
    expect(await typeFor("application/json, application/x-ndjson;q=0.5")).toBe("application/json");
    expect(await typeFor("application/ndjson")).toBe("application/ndjson");
    expect(await typeFor("application/jsonl, application/x-ndjson;q=0.9")).toBe("application/jsonl");
    for (const accept of ["*/*", "application/*", "text/html", "", "nonsense"]) {
      expect(await typeFor(accept), accept).toBe("application/json");
    }
  });

  it("break off without a trailer when the warehouse fails midway", async () => {
    const { reader } = createListReader({ records: records(2_500) });
    const { conversations } = reader.lines;
    const failing: Reader = {
      ...reader,
      lines: {
        ...reader.lines,
        conversations: (query) => async (signal) => ({
          ...(await conversations(query)(signal)),
          next: () => Promise.reject(new Error("a bug")),
        }),
      },
    };
    const { app } = createTestApp(failing);
    const url = `${CONVERSATIONS}?${SINCE}`;
    await expect(app.inject({ url, headers: { ...lines, host: "h" } })).rejects.toThrow(
      "response destroyed before completion",
    );
  });
});

describe("a compressed page", () => {
  it.each([
    ["zstd", zstdDecompressSync],
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync],
  ] as const)("holds the same bytes with %s", async (coding, decode) => {
    const { get, logLines } = setUp({ records: records(5_000) });
    const url = `${CONVERSATIONS}?${SINCE}`;
    const plain = await get(url);
    const response = await get(url, { ...AUTHORIZED, "accept-encoding": coding });
    expect(response.headers["content-encoding"]).toBe(coding);
    expect(response.headers["vary"]).toBe("accept, accept-encoding");
    expect(plain.headers["vary"]).toBe("accept, accept-encoding");
    expect(decode(response.rawPayload).toString()).toBe(plain.body);
    expect(response.rawPayload.length).toBeLessThan(plain.rawPayload.length / 3);
    await setImmediate();
    const logged = logLines.filter((line) => line["msg"] === "request");
    expect(logged.map((line) => line["bytes"])).toEqual([
      plain.rawPayload.length,
      response.rawPayload.length,
    ]);
  });

  it("that is empty is not compressed", async () => {
    const { get } = setUp();
    const url = `${CONVERSATIONS}?${SINCE}&created_to=2020-01-01T00:00:00Z`;
    const response = await get(url, { ...AUTHORIZED, "accept-encoding": "gzip" });
    expect(response.headers["content-encoding"]).toBeUndefined();
    expect(response.body).toBe('{"data":[],"meta":{"next_page_uri":null}}');
  });
});

describe("the link to the next page", () => {
  const linkOf = async (get: ReturnType<typeof setUp>["get"], url: string) => {
    const response = await get(url);
    expect(response.statusCode, response.body).toBe(200);
    const uri = response.json<PageBody>().meta.next_page_uri;
    if (uri === null) throw new Error("expected a link");
    return new URL(uri);
  };

  it("of style same repeats the window as it was given, makes the default bound explicit and adds a cursor", async () => {
    const { get } = setUp({ records: records(300) });
    const link = await linkOf(get, `${MESSAGES}?created_since=2024-03-01T00:00Z&page_size=100`);
    expect(link.origin + link.pathname).toBe(`http://export.example${MESSAGES}`);
    expect([...link.searchParams.keys()]).toEqual(["created_since", "created_to", "page_size", "cursor"]);
    expect(link.searchParams.get("created_since")).toBe("2024-03-01T00:00Z");
    expect(link.searchParams.get("created_to")).toBe("2024-03-08T00:00:00.000000Z");
    expect(link.searchParams.get("page_size")).toBe("100");
    const second = await linkOf(get, link.pathname + link.search);
    link.searchParams.delete("cursor");
    second.searchParams.delete("cursor");
    expect(second.href).toBe(link.href);
  });

  it("keeps the filter and the conversation, and leaves out a page size that was not given", async () => {
    const { get } = setUp({ records: records(30_001) });
    const messages = await linkOf(get, `${MESSAGES}?${SINCE}&conversation_id=c0`);
    expect([...messages.searchParams.keys()]).toEqual([
      "created_since",
      "created_to",
      "conversation_id",
      "cursor",
    ]);
    const updated = await linkOf(get, `${CONVERSATIONS}?updated_since=2024-02-29T12:00:00Z`);
    expect([...updated.searchParams.keys()]).toEqual(["updated_since", "updated_to", "cursor"]);
  });

  it("of style advancing moves the lower bound behind the last record and freezes the upper one", async () => {
    const { get, queries } = setUp({ records: records(300) }, { linkBounds: "advancing" });
    const link = await linkOf(get, `${MESSAGES}?${SINCE}&page_size=100`);
    expect(Object.fromEntries(link.searchParams)).toEqual({
      created_since: "2024-03-01T00:00:00.000100Z",
      created_to: "2024-03-08T00:00:00.000000Z",
      page_size: "100",
    });
    expect(queries[0]).toMatchObject({ wholeTies: true });
  });

  it("takes the style of the client before the default", async () => {
    const clients = { [KEY]: { ...CLIENT, linkBounds: "same" as const } };
    const { get, queries } = setUp({ records: records(300), clients }, { linkBounds: "advancing" });
    const link = await linkOf(get, `${MESSAGES}?${SINCE}&page_size=100`);
    expect(link.searchParams.has("cursor")).toBe(true);
    expect(queries[0]).toMatchObject({ wholeTies: false });
  });

  it("starts with the configured address", async () => {
    const { get } = setUp({ records: records(300) }, { publicBaseUrl: "https://public.example/x/api" });
    expect((await linkOf(get, `${MESSAGES}?${SINCE}&page_size=100`)).href).toMatch(
      /^https:\/\/public\.example\/x\/api\/v2\/export\/messages\?/,
    );
  });

  it("fits its own request alone, but any page size", async () => {
    const other = createKey().key;
    const { get } = setUp({
      records: records(300),
      clients: { [KEY]: CLIENT, [other]: { ...CLIENT, clientId: "other" } },
    });
    const link = await linkOf(get, `${MESSAGES}?${SINCE}&page_size=100`);
    const size = await get(MESSAGES + link.search.replace("page_size=100", "page_size=150"));
    expect(size.json<PageBody>().data.map(({ id }) => id)).toEqual(
      records(250)
        .slice(100)
        .map(({ id }) => id),
    );
    const refused = [
      await get(MESSAGES + link.search, { authorization: `Bearer ${other}` }),
      await get(`${MESSAGES}${link.search}&conversation_id=c1`),
      await get(CONVERSATIONS + link.search),
    ];
    for (const response of refused) {
      expect(response.statusCode).toBe(400);
      expect(response.json<ErrorBody>().errors[0]).toMatchObject({
        type: "bad_request",
        details: "cursor: does not belong to this request",
      });
    }
  });
});

describe("errors", () => {
  const errorOf = (response: { body: string; headers: Record<string, unknown> }) => {
    expect(response.headers["content-type"]).toBe("application/json");
    expect(response.headers["x-request-id"]).toBeTruthy();
    const body = JSON.parse(response.body) as ErrorBody;
    expect(Object.keys(body)).toEqual(["errors"]);
    expect(body.errors).toHaveLength(1);
    const [error] = body.errors;
    expect(Object.keys(error ?? {})).toEqual(["type", "message", "details"]);
    return error;
  };

  it("401 comes before the parameters are looked at", async () => {
    const { get, queries } = setUp();
    for (const headers of [
      {},
      { authorization: "Bearer nonsense" },
      { authorization: `Bearer ${createKey().key}` },
    ]) {
      const response = await get(`${CONVERSATIONS}?foo=%zz`, headers);
      expect(response.statusCode).toBe(401);
      expect(errorOf(response)?.type).toBe("unauthorized");
      expect(response.headers["www-authenticate"]).toMatch(/^Bearer realm="/);
    }
    const inQuery = await get(`${CONVERSATIONS}?${SINCE}&access_token=${KEY}`, {});
    expect(inQuery.statusCode).toBe(401);
    expect(queries).toEqual([]);
  });

  it("answers 403 to a key that was made for something else", async () => {
    const { get } = setUp({ clients: { [KEY]: { ...CLIENT, scopes: ["end_users"] } } });
    const response = await get(`${CONVERSATIONS}?${SINCE}`);
    expect(response.statusCode).toBe(403);
    expect(response.json()).toEqual({
      errors: [
        {
          type: "authorization_error",
          message: "The API key does not allow this operation",
          details: "the scope export is required",
        },
      ],
    });
    expect(response.headers["www-authenticate"]).toBe(
      'Bearer realm="conversation-export", error="insufficient_scope", scope="export"',
    );
  });

  it("404 for unknown paths, with or without a key, whatever the body", async () => {
    const { app, get } = setUp();
    for (const url of [
      "/api/v2",
      "/api/v2/export",
      "/api/v2/export/conversations/x",
      "/api/v3/export/messages",
      "/api%2Fv2%2Fexport%2Fconversations",
    ]) {
      const response = await get(url, {});
      expect(response.statusCode, url).toBe(404);
      expect(errorOf(response)?.type).toBe("resource_not_found");
    }
    const headers = { host: "h", "content-type": "application/xml" };
    const posted = await app.inject({ method: "POST", url: "/x", headers, body: "<a/>" });
    expect(posted.statusCode).toBe(404);
  });

  it.each([
    ["/v2/export/conversations", "/api/v2/export/conversations"],
    ["/v2/export/messages/?x=1", "/api/v2/export/messages"],
    ["/api/v2/export/messages/", "/api/v2/export/messages"],
    ["/api//v2/export//messages", "/api/v2/export/messages"],
    ["/api%2Fv2%2Fexport%2Fconversations", "/api/v2/export/conversations"],
    ["/api/v2/export/conversation", "/api/v2/export/conversations"],
    ["/api/v3/export/messages", "/api/v2/export/messages"],
    ["/data_api/v1.3/messages", "/data_api/v1.1/messages"],
    ["/v2/data-subject-request/17", "/api/v2/data-subject-request/{id}"],
    ["/v2/export/nothing", undefined],
    ["/api/v2/", undefined],
  ])("404 for %s names %s", async (url, meant) => {
    const { get } = setUp();
    const response = await get(url, {});
    expect(response.statusCode).toBe(404);
    expect(errorOf(response)?.details).toBe(meant === undefined ? null : `did you mean ${meant}?`);
  });

  it("shows every character of a request in its error", async () => {
    const { get } = setUp({});
    const name = "\u202e\u009b2J\u2028\u0085\u001b[2J";
    const { body } = await get(`${CONVERSATIONS}?${SINCE}&${encodeURIComponent(name)}=1`);
    expect(body).toMatch(/^[ -~]+$/);
    expect((JSON.parse(body) as ErrorBody).errors[0]?.details).toBe(`${name}: unknown parameter`);
  });

  it.each([
    ["/", "http://h/api/"],
    ["/api", "http://h/api/"],
    ["/api/", "http://h/api/"],
    ["/?x=1", "http://h/api/"],
  ])("leads from %s to the reference, without a key", async (url, folder) => {
    for (const [reference, page] of [
      [true, "reference"],
      [false, "openapi.json"],
    ] as const) {
      const { app } = createTestApp(createListReader({}).reader, { reference });
      const response = await app.inject({ method: "GET", url, headers: { host: "h" } });
      expect(response.statusCode).toBe(302);
      const location = new URL(String(response.headers["location"]), `http://h${url}`).href;
      expect(location).toBe(folder + page);
      const led = await app.inject({
        method: "GET",
        url: new URL(location).pathname,
        headers: { host: "h" },
      });
      expect(led.statusCode).toBe(200);
      // Also behind a proxy that adds to the path.
      expect(response.headers["location"]).not.toMatch(/^\//);
    }
  });

  it("404 for an id of any length", async () => {
    const { get } = setUp({ clients: { [KEY]: { ...CLIENT, scopes: ["compliance"] } } });
    for (const length of [1, 101, 8_000]) {
      const response = await get(`/api/v2/data-subject-request/${"1".repeat(length)}`);
      expect(response.statusCode, String(length)).toBe(404);
      expect(errorOf(response)?.type).toBe("resource_not_found");
    }
  });

  it("415 says what is wanted when the type of a body cannot be read", async () => {
    const { app } = setUp();
    const headers = { host: "h", "content-type": "json" };
    const response = await app.inject({
      method: "POST",
      url: "/api/campaigns/sms/trigger",
      headers,
      body: "{}",
    });
    expect(response.statusCode).toBe(415);
    expect(response.headers["accept"]).toBe("application/json");
    expect(errorOf(response)?.details).toMatch(/^Content-Type: must be application\/json/);
  });

  it("405 says what is allowed, for every other method", async () => {
    const { app } = setUp();
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const) {
      const headers = { host: "h", "content-type": "text/weird" };
      const response = await app.inject({ method, url: `${MESSAGES}?a=1`, headers, body: "{" });
      expect(response.statusCode, method).toBe(405);
      expect(response.headers["allow"]).toBe("GET, HEAD");
      expect(errorOf(response)?.type).toBe("bad_request");
    }
  });

  it("400 for malformed percent encodings in path and query", async () => {
    const { get } = setUp();
    const path = await get("/api/v2/export/%zz", {});
    expect(path.statusCode).toBe(400);
    expect(errorOf(path)?.type).toBe("bad_request");
    const query = await get(`${CONVERSATIONS}?${SINCE}&page_size=%f`);
    expect(query.statusCode).toBe(400);
    expect(errorOf(query)?.details).toContain("page_size");
  });

  it("503 when the warehouse is in trouble, with an id that is in the log", async () => {
    const cause = new Error("SELECT secret FROM clickhouse.internal");
    const trouble = new ServiceError("warehouse_unavailable", "no host clickhouse.internal", {
      retryable: true,
      cause,
    });
    const { response, logLines } = await askWith(
      { conversationsByCreation: () => Promise.reject(trouble) },
      { "x-request-id": "request-7" },
    );
    expect(response.statusCode).toBe(503);
    expect(Number(response.headers["retry-after"])).toBeGreaterThan(0);
    const error = errorOf(response);
    expect(error?.type).toBe("internal_server_error");
    const errorId = /^error_id: ([0-9a-f-]{36})$/.exec(error?.details ?? "")?.[1];
    expect(errorId).toBeDefined();
    expect(response.body).not.toMatch(/clickhouse|SELECT|secret/i);
    expect(logLines.find((line) => line["errorId"] === errorId && line["level"] === "error")).toMatchObject({
      requestId: "request-7",
    });
  });

  it("503, not 401, when keys cannot be looked up", async () => {
    const { response } = await askWith({ findKey: () => Promise.reject(away) });
    expect(response.statusCode).toBe(503);
  });

  it("503 when the query fails before its first byte", async () => {
    const records = new Readable({
      read() {
        this.destroy(away);
      },
    });
    const { response } = await askWith({ conversationsByCreation: () => Promise.resolve(pageOf(records)) });
    expect(response.statusCode).toBe(503);
    expect(errorOf(response)?.details).toMatch(/^error_id: /);
  });

  it("500 for a bug, and nothing of it leaves", async () => {
    const bug = new TypeError("x is not a function at secret.ts");
    const { response, logLines } = await askWith({ conversationsByCreation: () => Promise.reject(bug) });
    expect(response.statusCode).toBe(500);
    const error = errorOf(response);
    expect(error?.type).toBe("internal_server_error");
    expect(response.body).not.toContain("secret");
    expect(response.headers["retry-after"]).toBeUndefined();
    expect(logLines.some((line) => error?.details === `error_id: ${String(line["errorId"])}`)).toBe(true);
  });
});

describe("every answer", () => {
  it("carries the request id that came, if it is sane, else a new one", async () => {
    const { get } = setUp();
    const given = await get("/x", { "x-request-id": "abc-123" });
    expect(given.headers["x-request-id"]).toBe("abc-123");
    for (const id of ["", "a b", "x".repeat(129), 'a"b']) {
      const made = await get("/x", { "x-request-id": id });
      expect(made.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it("is counted and logged, without key, query or address", async () => {
    const { get, logLines, metricsText } = setUp({ records: records(3) });
    const response = await get(`${MESSAGES}?${SINCE}&conversation_id=c1`);
    await get("/nowhere/secret-path", {});
    await setImmediate();
    const line = logLines.find((line) => line["msg"] === "request");
    expect(line).toMatchObject({
      route: MESSAGES,
      method: "GET",
      status: 200,
      clientId: "acme",
      keyId: "key-1",
      rows: 1,
    });
    expect(line).not.toHaveProperty("caller");
    expect(line?.["bytes"]).toBe(Buffer.byteLength(response.body));
    expect(JSON.stringify(logLines)).not.toMatch(/cx_|created_since|conversation_id|secret-path/);
    const text = await metricsText();
    expect(text).toMatch(
      new RegExp(
        `conversation_export_api_requests_total\\{route="${MESSAGES}",method="GET",status="200",.*\\} 1`,
      ),
    );
    expect(text).toMatch(
      /conversation_export_api_requests_total\{route="unknown",method="GET",status="404",.*\} 1/,
    );
    expect(text).toMatch(/conversation_export_api_page_bytes_total\{.*client="acme".*\} \d{3}/);
    expect(text).toMatch(/conversation_export_api_key_lookups_total\{result="asked",.*\} 1/);
    expect(text).toMatch(/conversation_export_api_pages_in_flight\{.*\} 0/);
  });

  it("names the network of a refused caller by a hash that nobody can guess", async () => {
    const { app, logLines } = setUp({}, { cursorSecret: "one secret of 32 characters, at least" });
    const other = setUp({}, { cursorSecret: "another secret of 32 characters, or so" });
    const ask = (of: typeof app, remoteAddress: string, url = MESSAGES, headers = {}) =>
      of.inject({ url, headers: { host: "h", ...headers }, remoteAddress });
    await ask(app, "192.0.2.1");
    await ask(app, "192.0.2.2");
    await ask(app, "192.0.2.1");
    await ask(app, "192.0.2.1", "/api/v2/end-users", AUTHORIZED);
    await ask(app, "192.0.2.1", "/nowhere");
    await ask(other.app, "192.0.2.1");
    await setImmediate();
    const lines = [...logLines, ...other.logLines].filter((line) => line["msg"] === "request");
    expect(lines.map((line) => [line["status"], line["keyId"]])).toEqual([
      [401, undefined],
      [401, undefined],
      [401, undefined],
      [403, "key-1"],
      [404, undefined],
      [401, undefined],
    ]);
    const [one, two, again, scope, missing, elsewhere] = lines.map((line) => line["caller"]);
    expect(one).toMatch(/^[0-9a-f]{16}$/);
    expect([again, scope, missing]).toEqual([one, one, undefined]);
    expect(new Set([one, two, elsewhere]).size).toBe(3);
    expect(JSON.stringify(logLines)).not.toContain("192.0.2");
  });

  it("speaks of the hosts below this one only when it is asked to", async () => {
    const transport = async (hstsSubDomains: boolean): Promise<unknown> => {
      const { get } = setUp({}, { hstsSubDomains });
      return (await get("/x", { "x-forwarded-proto": "https" })).headers["strict-transport-security"];
    };
    expect(await transport(false)).toBe("max-age=31536000");
    expect(await transport(true)).toBe("max-age=31536000; includeSubDomains");
  });

  it("counts a key without the scope as a failure of the address", async () => {
    const authThrottle = createAuthThrottle({ windows: [{ requests: 2, seconds: 60 }] });
    const { get } = setUp({ records: records(1) }, { authThrottle });
    const statuses = [];
    for (let n = 0; n < 3; n += 1) statuses.push((await get("/api/v2/end-users")).statusCode);
    expect(statuses).toEqual([403, 403, 429]);
    expect((await get(`${MESSAGES}?${SINCE}`)).statusCode).toBe(200);
  });
});
