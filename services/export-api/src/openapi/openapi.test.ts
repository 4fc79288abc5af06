import { Readable } from "node:stream";
import { type EventType, processEvent } from "@conversation-export/domain";
import { createKey, ServiceError } from "@conversation-export/runtime";
import type { ListSteps, OpenStep, Reader } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { rateLimitExceeded } from "../http/api-error.ts";
import { ERROR_TYPES } from "../http/errors.ts";
import { describeRate } from "../admission/rate-limit.ts";
import { AUTHORIZED, CLIENT, createListReader, createTestApp, KEY, pageOf } from "../http/app.fixture.ts";
import type { ExportAppDeps } from "../export-app.ts";
import { contentOf } from "../formats/file.fixture.ts";
import { PARQUET_TYPE } from "../formats/stream-type.ts";

type Header = { required?: boolean; schema: unknown };
type Response = {
  headers: Record<string, { $ref: string }>;
  content: Record<string, { schema: Record<string, unknown>; example?: unknown }>;
};
type Operation = {
  operationId: string;
  security: unknown[];
  parameters?: { name: string; in: string; schema: Record<string, unknown> }[];
  responses: Record<string, { $ref: string } | Response>;
};
type Document = {
  servers: { url: string }[];
  paths: Record<string, { servers?: { url: string }[] } & Record<"get" | "post", Operation | undefined>>;
  components: {
    schemas: Record<string, unknown>;
    headers: Record<string, Header>;
    responses: Record<string, Response>;
  };
};

const documentOf = async (overrides: Partial<ExportAppDeps> = {}): Promise<Document> => {
  const { app } = createTestApp(createListReader({}).reader, overrides);
  return (await app.inject({ url: "/api/openapi.json", headers: { host: "x" } })).json<Document>();
};
const document = await documentOf();
const lastOf = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  (["get", "post"] as const).flatMap((method) => {
    const operation = item[method];
    return operation === undefined
      ? []
      : [{ path, method: method.toUpperCase() as "GET" | "POST", operation }];
  }),
);
const secured = operations.filter(({ operation }) => operation.security.length > 0);
const named = (all: typeof operations) => all.map((one) => [`${one.method} ${one.path}`, one] as const);

const responseOf = (operation: Operation, status: number): Response => {
  const response = operation.responses[status];
  if (response === undefined) throw new Error(`${operation.operationId} has no answer ${status}`);
  const whole = "$ref" in response ? document.components.responses[lastOf(response.$ref)] : response;
  if (whole === undefined) throw new Error(`${JSON.stringify(response)} leads nowhere`);
  return whole;
};

const exampleOf = (operation: Operation, status: number): unknown =>
  responseOf(operation, status).content["application/json"]?.example;

const checkOf = (schema: Record<string, unknown>): z.ZodType => {
  const text = JSON.stringify({ ...schema, $defs: document.components.schemas });
  return z.fromJSONSchema(JSON.parse(text.replaceAll("#/components/schemas/", "#/$defs/")));
};

type Answer = { statusCode: number; headers: Record<string, unknown>; body: string };

const expectDocumented = (operation: Operation, answer: Answer): void => {
  const response = responseOf(operation, answer.statusCode);
  for (const [name, { $ref }] of Object.entries(response.headers)) {
    const header = document.components.headers[lastOf($ref)];
    const given = answer.headers[name.toLowerCase()];
    expect(given !== undefined || header?.required !== true, `${name} is there`).toBe(true);
  }
  const type = String(answer.headers["content-type"]);
  const media = response.content[type];
  expect(media, type).toBeDefined();
  expect(() => checkOf(media?.schema ?? {}).parse(JSON.parse(answer.body))).not.toThrow();
};

const ALL_SCOPES = { ...CLIENT, scopes: ["export", "end_users", "compliance", "campaigns"] as const };
const DELETED = createKey().key;
const POOR = createKey().key;
const clients = {
  [KEY]: ALL_SCOPES,
  [DELETED]: { ...ALL_SCOPES, clientDeleted: true },
  [POOR]: { ...ALL_SCOPES, scopes: [] },
};

const setUp = (reader: Partial<Reader> = {}, overrides: Partial<ExportAppDeps> = {}) =>
  createTestApp({ ...createListReader({ clients }).reader, ...reader }, overrides).app;

const BODY = JSON.stringify({ type: "ERASURE", email: "jane@example.com" });
const SINCE = "created_since=2026-10-01T00:00:00Z";
const urlOf = (path: string): string => `/api${path.replace("{id}", "0")}`;
const queryOf = (path: string): string =>
  /(?<!changes)\/(conversations|messages)/.test(path) ? `?${SINCE}` : "";

/** `printRoutes` draws a tree of parts of paths. */
const routesOf = (drawn: string): { path: string; methods: string[] }[] => {
  const parts: string[] = [];
  return drawn.split("\n").flatMap((line) => {
    const match = /^([│ ]*)[├└]── (\S+) \(([^)]+)\)/.exec(line);
    if (match === null) return [];
    const [, indent = "", part = "", methods = ""] = match;
    const depth = indent.length / 4;
    parts.splice(depth, parts.length, part);
    return [{ path: parts.join(""), methods: methods.split(", ") }];
  });
};

describe("the document and the service", () => {
  it("have the same operations", async () => {
    const app = setUp();
    await app.ready();
    const served = routesOf(app.printRoutes({ commonPrefix: false }))
      .filter(({ path }) => !path.startsWith("/api/reference") && !["/", "/api", "/api/"].includes(path))
      .flatMap(({ path, methods }) => {
        const plain = path
          .replace(/^\/api(?=\/)/, "")
          .replace(/\/$/, "")
          .replaceAll(/:(\w+)/g, "{$1}");
        if (methods.includes("GET")) expect(methods, path).toContain("HEAD");
        return methods.filter((method) => method !== "HEAD").map((method) => `${method} ${plain}`);
      });
    const documented = operations.map(({ method, path }) => `${method} ${path}`);
    expect([...new Set(served)].sort()).toEqual(documented.sort());
  });

  it.each(named(secured))("answer %s without a key, and with one that may not", async (_, one) => {
    const app = setUp();
    const { method, path, operation } = one;
    for (const [key, status] of [
      [undefined, 401],
      ["nonsense", 401],
      [POOR, 403],
      [DELETED, 404],
    ] as const) {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const answer = await app.inject({ method, url: urlOf(path), headers: { host: "x", ...headers } });
      expect(answer.statusCode).toBe(status);
      expectDocumented(operation, answer);
    }
  });

  it.each(named(operations))("answer what is wrong with %s", async (_, { method, path, operation }) => {
    const app = setUp();
    const headers = { host: "x", ...AUTHORIZED };
    const wrongMethod = await app.inject({ method: "DELETE", url: urlOf(path), headers });
    expect(wrongMethod.statusCode).toBe(405);
    expectDocumented(operation, wrongMethod);
    const large = await app.inject({
      method,
      url: urlOf(path),
      headers: { ...headers, "content-length": "4000001" },
    });
    expect(large.statusCode).toBe(413);
    expectDocumented(operation, large);
    if (operation.security.length === 0) return;
    const unknown = await app.inject({
      method,
      url: `${urlOf(path)}?foo=1`,
      headers: { ...headers, "content-type": "application/json" },
      payload: method === "POST" ? BODY : "",
    });
    expect(unknown.statusCode).toBe(400);
    expect(unknown.body).toContain("foo");
    expectDocumented(operation, unknown);
  });

  it.each(named(secured))("answer %s with trouble", async (_, { method, path, operation }) => {
    const headers = { host: "x", ...AUTHORIZED };
    for (const [error, status] of [
      [new Error("a bug"), 500],
      [new ServiceError("down", "not reached", { retryable: true }), 503],
      [rateLimitExceeded(describeRate({ requests: 10, seconds: 1 }), 1), 429],
    ] as const) {
      const app = setUp({}, { rateLimit: { admit: () => Promise.reject(error) } });
      const answer = await app.inject({ method, url: urlOf(path) + queryOf(path), headers });
      expect(answer.statusCode).toBe(status);
      expectDocumented(operation, answer);
      if (status === 429) expect(JSON.parse(answer.body)).toEqual(exampleOf(operation, status));
    }
  });

  it.each(
    named(secured.filter(({ method }) => method === "POST")),
  )("answer %s for a body that is not JSON, or of the wrong form", async (_, { method, path, operation }) => {
    const app = setUp();
    for (const [type, payload, status] of [
      ["text/plain", BODY, 415],
      ["application/json", "{", 400],
      ["application/json", '{"type":"ERASURE"}', path.includes("sms") ? 400 : 422],
    ] as const) {
      const headers = { host: "x", ...AUTHORIZED, "content-type": type };
      const answer = await app.inject({ method, url: urlOf(path), headers, payload });
      expect(answer.statusCode).toBe(status);
      expectDocumented(operation, answer);
      if (status !== 400) expect(JSON.parse(answer.body)).toEqual(exampleOf(operation, status));
    }
  });
});

const recordOf = (type: EventType, data: Record<string, unknown>): string => {
  const attributes = { specversion: "1.0", id: "e", source: "s", type, time: "2026-10-05T00:00:00Z" };
  const text = JSON.stringify({ ...attributes, clientid: "acme", data });
  const outcome = processEvent({ text, headers: {}, position: { partition: 0, offset: 0 } }, type);
  if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
  const { record } = outcome;
  if (record.afterUpload === null) return record.beforeUpload;
  const handoffs =
    record.type === "conversation.exported"
      ? `[${record.handoffs.map(({ entry }) => entry).join(",")}]${record.tail}`
      : "";
  return `${record.beforeUpload}2026-10-05T00:00:01.000000+00:00${record.afterUpload}${handoffs}`;
};

const CREATED = { date_created: "2026-10-04T00:00:00Z" };
const RECORDS = {
  conversation: [
    recordOf("conversation.exported", { _id: "bare", ...CREATED }),
    recordOf("conversation.exported", {
      _id: "full",
      ...CREATED,
      agent_id: ["a"],
      csat: { score: 5, unforeseen: [1] },
      classifications: [{ topic_id: "t", intents: [{ intent_id: "i" }] }],
      handoffs: [{ id: "h", ...CREATED, reason_code: "not in the list" }],
      used_mcp: [{ id: "m", tool_name: "t" }],
      variables: { a: { b: [null] } },
    }),
  ],
  message: [
    recordOf("message.exported", { _id: "bare", conversation_id: "c", ...CREATED }),
    recordOf("message.exported", {
      _id: "full",
      conversation_id: "c",
      ...CREATED,
      review: 3,
      message_data: { body: "b" },
    }),
  ],
  endUser: [
    recordOf("end_user.exported", { end_user_id: "bare", created_at: "2026-10-04T00:00:00Z" }),
    recordOf("end_user.exported", {
      end_user_id: "full",
      created_at: "2026-10-04T00:00:00Z",
      profile: { email: "jane@example.com", metadata: { vip: true }, system_properties: { crm: "1" } },
    }),
  ],
};

const page = (records: readonly string[], separator = ",") =>
  pageOf(Readable.from([Buffer.from(records.join(separator))]), { date: 1, id: "x" });

const DELETED_AT = '"deleted":true,"deleted_at":"2026-10-05T00:00:00.000000+00:00"';
const CHANGES = {
  conversation: [...RECORDS.conversation, `{"_id":"gone",${DELETED_AT}}`],
  message: [...RECORDS.message, `{"_id":"gone",${DELETED_AT}}`],
  end_user: [...RECORDS.endUser, `{"end_user_id":"gone",${DELETED_AT}}`],
};

const filled: Partial<Reader> = {
  changes: ({ kind }) => {
    const { records } = page(CHANGES[kind].slice(1));
    return Promise.resolve({ end: () => ({ rows: 2, next: { date: 1, id: "x" }, isLast: true }), records });
  },
  conversationsByCreation: ({ separator }) => Promise.resolve(page(RECORDS.conversation, separator)),
  messagesByCreation: ({ separator }) => Promise.resolve(page(RECORDS.message, separator)),
  endUsers: () =>
    Promise.resolve({
      end: () => ({ rows: 2, next: "x" }),
      records: Readable.from([Buffer.from(RECORDS.endUser.join(","))]),
    }),
};

const stepOf =
  (records: readonly string[]): OpenStep =>
  () =>
    Promise.resolve({
      bytes: Readable.from(records.map((record) => Buffer.from(`${record}\n`))),
      next: null,
    });

describe("a success", () => {
  const lists = secured.filter(({ method, path }) => method === "GET" && !path.includes("{"));

  it.each(named(lists))("of %s is as the document says", async (_, { path, operation }) => {
    const answer = await setUp(filled).inject({
      url: urlOf(path) + queryOf(path),
      headers: { host: "x", ...AUTHORIZED },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.json<{ data: unknown[] }>().data).toHaveLength(2);
    expectDocumented(operation, answer);
  });

  it.each(
    named(lists.filter(({ path }) => path.startsWith("/v2/export"))),
  )("of %s may be lines, as the document says", async (_, { path, operation }) => {
    const headers = { host: "x", ...AUTHORIZED, accept: "application/x-ndjson" };
    const lines: ListSteps = {
      conversations: () => stepOf(RECORDS.conversation),
      messages: () => stepOf(RECORDS.message),
      endUsers: () => stepOf(RECORDS.endUser),
      changes: ({ kind }) => stepOf(CHANGES[kind].slice(1)),
    };
    const answer = await setUp({ ...filled, lines }).inject({ url: urlOf(path) + queryOf(path), headers });
    expect(answer.statusCode).toBe(200);
    expect(Object.keys(responseOf(operation, 200).content)).toContain(answer.headers["content-type"]);
    expect(answer.body.trimEnd().split("\n")).toHaveLength(3);
  });

  it.each(
    named(lists.filter(({ path }) => /^\/v2\/(export|end-users)/.test(path))),
  )("of %s may be Parquet, as the document says", async (_, { path, operation }) => {
    const headers = { host: "x", ...AUTHORIZED, accept: "application/vnd.apache.parquet" };
    const answer = await setUp().inject({ url: urlOf(path) + queryOf(path), headers });
    expect(answer.statusCode).toBe(200);
    expect(Object.keys(responseOf(operation, 200).content)).toContain(answer.headers["content-type"]);
    expect(contentOf(answer.rawPayload)).toMatchObject({ rows: 3, facts: { count: "3" } });
  });

  it.each(
    named(secured.filter(({ path }) => !/^\/v2\/(export|end-users)/.test(path))),
  )("of %s is never Parquet", async (_, { method, path, operation }) => {
    const headers = { host: "x", ...AUTHORIZED, accept: "application/vnd.apache.parquet" };
    const answer = await setUp().inject({ method, url: urlOf(path) + queryOf(path), headers });
    expect(answer.statusCode).toBe(406);
    expectDocumented(operation, answer);
    expect(JSON.parse(answer.body)).toEqual(exampleOf(operation, 406));
  });

  it("of a list that lacks a field of its records is not", () => {
    const one = operations.find(({ operation }) => operation.operationId === "exportConversations");
    const { variables: _, ...less } = JSON.parse(RECORDS.conversation[0] ?? "") as Record<string, unknown>;
    const schema = responseOf(one?.operation as Operation, 200).content["application/json"]?.schema ?? {};
    const body = (record: unknown) => ({ data: [record], meta: { next_page_uri: null } });
    expect(checkOf(schema).safeParse(body({ ...less, variables: {} })).success).toBe(true);
    expect(checkOf(schema).safeParse(body(less)).success).toBe(false);
  });
});

describe("the document", () => {
  it("has the closed list of error types", () => {
    expect(JSON.stringify(document.components.schemas["Error"])).toContain(JSON.stringify(ERROR_TYPES));
  });

  it.each(named(secured))("names every status that %s may have", (_, { method, operation }) => {
    const always = [200, 400, 401, 403, 404, 405, 406, 408, 413, 429, 431, 500, 503];
    const expected = method === "POST" ? [...always, 415, 422] : always;
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(expected.map(String)));
    for (const status of expected)
      expect(responseOf(operation, status).headers).toHaveProperty("X-Request-Id");
  });

  it("gives the bounds and examples of parameters", () => {
    const one = operations.find(({ operation }) => operation.operationId === "exportConversations");
    const parameters = new Map(one?.operation.parameters?.map(({ name, schema }) => [name, schema]));
    expect(parameters.get("page_size")).toMatchObject({ minimum: 100, maximum: 10_000, default: 10_000 });
    expect(parameters.get("created_since")).toMatchObject({
      format: "date-time",
      examples: [expect.any(String)],
    });
    for (const name of ["created_to", "updated_to"]) {
      expect(parameters.get(name), name).toMatchObject({ type: ["string", "null"], format: "date-time" });
    }
    // A wider pattern would contradict the format.
    for (const name of ["created_since", "created_to", "updated_since", "updated_to"]) {
      const { pattern = "" } = parameters.get(name) as { pattern?: string };
      expect("2026-10-01T02:00:00.5+02:00", name).toMatch(new RegExp(pattern));
      for (const text of ["2026-10-01T00:00Z", "2026-10-01T02:00:00+0200", "2026-10-01T00:00:00,5Z"])
        expect(text, name).not.toMatch(new RegExp(pattern));
    }
    expect([...parameters.keys()].sort()).toEqual([
      "created_since",
      "created_to",
      "cursor",
      "page_size",
      "updated_since",
      "updated_to",
    ]);
  });

  it("gives legacy conversations the fields of their version, and legacy messages the filter", () => {
    const of = (id: string) => operations.find(({ operation }) => operation.operationId === id)?.operation;
    for (const id of ["legacyConversationsV1", "legacyConversationsV1_1", "legacyConversationsV1_2"]) {
      const { schema } = responseOf(of(id) as Operation, 200).content["application/json"] ?? {};
      for (const name of ["platform", "is_engaged", "is_escalated"]) {
        expect(JSON.stringify(schema), `${id} has ${name}`).toContain(`"${name}"`);
      }
      expect(of(id)?.parameters?.map(({ name }) => name)).not.toContain("conversation_id");
    }
    for (const id of ["legacyMessagesV1", "legacyMessagesV1_1", "legacyMessagesV1_2"]) {
      expect(of(id)?.parameters?.map(({ name }) => name)).toContain("conversation_id");
    }
  });

  it("has examples that the schemas of requests accept", () => {
    for (const name of ["DataSubjectRequest", "SmsTrigger"]) {
      const schema = document.components.schemas[name] as { examples: unknown[] };
      expect(schema.examples.length).toBeGreaterThan(0);
      for (const example of schema.examples) checkOf(schema).parse(example);
    }
  });

  it.each(named(secured))("has an example of %s that fits its schema, with a record in each line", (_, {
    operation,
  }) => {
    const { "application/json": json, [PARQUET_TYPE]: _file, ...lines } = responseOf(operation, 200).content;
    expect(json?.example).toBeDefined();
    expect(checkOf(json?.schema ?? {}).safeParse(json?.example)).toMatchObject({ success: true });
    for (const { example } of Object.values(lines)) {
      const written = String(example)
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { trailer?: { count: number } });
      expect(written.at(-1)?.trailer?.count).toBe(written.length - 1);
    }
  });

  it("names its own host, or the public one", async () => {
    expect(document.servers).toEqual([{ url: "/api" }]);
    expect(document.paths["/data_api/v1/messages"]?.servers).toEqual([{ url: "/" }]);
    const published = await documentOf({ publicBaseUrl: "https://export.example/x/api" });
    expect(published.servers).toEqual([{ url: "https://export.example/x/api" }]);
    expect(published.paths["/data_api/v1/messages"]?.servers).toEqual([{ url: "https://export.example/x" }]);
  });
});
