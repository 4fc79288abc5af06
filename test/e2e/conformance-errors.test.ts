import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendRaw } from "../abuse/send-raw.ts";
import { type Answer, call } from "../conformance/call.ts";
import { expectError } from "../conformance/expect-error.ts";
import { CAMPAIGN, EXPORT_OPERATIONS, type Operation, OPERATIONS } from "../conformance/operations.ts";
import { ops } from "../system/ops.ts";
import { startSystem, type System } from "../system/system.ts";
import { until, within } from "../system/until.ts";

const SCOPES = ["export", "end_users", "compliance", "campaigns"] as const;
const ERROR_ID = /^error_id: ([0-9a-f-]{36})$/;

const rows = OPERATIONS.map((operation) => [operation.name, operation] as const);
const [CONVERSATIONS = OPERATIONS[0]] = EXPORT_OPERATIONS;

let system: System;
let host = "";
let key = "";

beforeAll(async () => {
  system = await startSystem("test-conformance-errors");
  host = new URL(system.apiUrl).origin;
  key = await system.key("acme", SCOPES);
  await Promise.all([
    system.service("export-api"),
    system.ops("campaigns", "create", CAMPAIGN, "--client", "acme"),
  ]);
  await until("triggers are taken", 30_000, async () => {
    const answers = await Promise.all(OPERATIONS.map((operation) => ask(operation)));
    return answers.every(({ status }) => status === 200);
  });
});
afterAll(() => system?.stop());

const ask = (
  operation: Operation | undefined,
  options: { key?: string | undefined; base?: string; query?: string } = {},
): Promise<Answer> => {
  if (operation === undefined) throw new Error("no operation");
  const { method, path, body } = operation;
  const { base = host, query = "" } = options;
  const more = query === "" ? "" : (path.includes("?") ? "&" : "?") + query;
  return call(base + path + more, { key: "key" in options ? options.key : key, method, body });
};

const logged = (errorId: string): boolean =>
  readFileSync(join(system.logFolder, "export-api.log"), "utf8")
    .split("\n")
    .some((line) => line.includes(errorId) && line.includes('"level":"error"'));

describe("5. Authentication", () => {
  it.each(rows)("%s takes the key as a bearer credential", async (_name, operation) => {
    expect((await ask(operation)).status).toBe(200);
    for (const scheme of ["bearer", "BEARER"]) {
      const headers = { authorization: `${scheme} ${key}` };
      const { path, method, body } = operation;
      expect((await call(host + path, { method, body, headers })).status).toBe(200);
    }
  });

  it.each(rows)("%s is unauthorized without a key, or with a wrong one", async (_name, operation) => {
    const { path, method, body } = operation;
    const wrong = `${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`;
    for (const authorization of [
      undefined,
      `Bearer ${wrong}`,
      "Bearer ",
      "Bearer",
      `Basic ${btoa(`acme:${key}`)}`,
      key,
      `Bearer ${key} ${key}`,
    ]) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      const answer = await call(host + path, { method, body, headers });
      expect(answer.status, authorization ?? "none").toBe(401);
      expect(expectError(answer, "unauthorized").details).toBeNull();
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer realm="[^"]+"/);
      expect(answer.headers.has("x-ratelimit-limit")).toBe(false);
    }
  });

  it.each(rows)("%s takes no key from the query", async (_name, operation) => {
    for (const name of ["api_key", "access_token", "key"]) {
      expect((await ask(operation, { key: undefined, query: `${name}=${key}` })).status).toBe(401);
    }
  });

  it("the document of the export API alone needs no key", async () => {
    expect((await call(`${host}/api/openapi.json`)).status).toBe(200);
  });

  it("keys come from the operators, say when they were used, and end within seconds", async () => {
    const { apiUrl } = await system.anotherApi({ KEY_CACHE_SECONDS: "2" });
    const base = new URL(apiUrl).origin;
    await system.ops("clients", "create", "brief");
    const create = async (): Promise<{ key: string; key_id: string }> =>
      JSON.parse(await system.ops("keys", "create", "--client", "brief", "--json")) as {
        key: string;
        key_id: string;
      };
    const statusFor = async ({ key }: { readonly key: string }): Promise<number> =>
      (await ask(CONVERSATIONS, { key, base })).status;
    const [first, second] = [await create(), await create()];
    expect([await statusFor(first), await statusFor(second)]).toEqual([200, 200]);

    const { clickhouse, redis } = system.stack;
    const operator = { CLICKHOUSE_URL: clickhouse.url("migrator"), REDIS_URL: redis.urlOf("ops") };
    // Repeats when Redis was too slow to store the use, which nobody waits for.
    await until("the use of the key is listed", 20_000, async () => {
      const other = await system.anotherApi({});
      const usedFrom = Date.now();
      expect((await ask(CONVERSATIONS, { key: second.key, base: new URL(other.apiUrl).origin })).status).toBe(
        200,
      );
      // Stopping stores at once what it would store within a minute.
      await other.process.kill("SIGTERM");
      const listed = await ops(operator, "keys", "list", "--client", "brief", "--json");
      const used = (JSON.parse(listed) as { key_id: string; last_used_at: string }[]).find(
        ({ key_id: id }) => id === second.key_id,
      );
      return Date.parse(used?.last_used_at ?? "") >= usedFrom;
    });

    await system.ops("keys", "revoke", first.key_id);
    await within("the revoked key is refused", 30_000, async () => (await statusFor(first)) === 401);
    expect(await statusFor(second)).toBe(200);
    await system.ops("clients", "delete", "brief");
    await within("the client is missing", 30_000, async () => (await statusFor(second)) === 404);
    expect(await statusFor(first)).toBe(401);
  });
});

describe("7. Errors", () => {
  it.each(rows)("%s: bad_request, 400, names the unknown fields", async (_name, operation) => {
    const answer = await ask(operation, { query: "colour=red&size=1" });
    expect(answer.status).toBe(400);
    const { details } = expectError(answer, "bad_request");
    expect(details).toContain("colour: unknown parameter");
    expect(details).toContain("size: unknown parameter");
  });

  it.each(rows)("%s: authorization_error, 403, for a key without its scope", async (_name, operation) => {
    const others = SCOPES.filter((scope) => scope !== operation.scope);
    const answer = await ask(operation, { key: await keyWith(others) });
    expect(answer.status).toBe(403);
    expect(answer.headers.get("www-authenticate")).toContain('error="insufficient_scope"');
    expect(expectError(answer, "authorization_error").details).toContain(operation.scope);
    const own = await ask(operation, { key: await keyWith([operation.scope]) });
    expect(own.status).toBe(200);
  });

  const keysByScopes = new Map<string, Promise<string>>();
  const keyWith = (scopes: readonly string[]): Promise<string> => {
    const name = scopes.join();
    const made = keysByScopes.get(name) ?? system.key("acme", scopes);
    keysByScopes.set(name, made);
    return made;
  };

  it.each([
    ["/api/v2", null],
    ["/api/v2/export/nothing", null],
    ["/api/v2/export/conversations/1", /^did you mean \/api\/v2\/export\/conversations\?$/],
    ["/api/v1/export/messages", /^did you mean \/api\/v2\/export\/messages\?$/],
    ["/api/v3/data-subject-request", /^did you mean \/api\/v[12]\/data-subject-request\?$/],
    ["/data_api/v1.3/messages", /^did you mean \/data_api\/v1(\.[12])?\/messages\?$/],
    ["/data_api/v1.4/conversations", /^did you mean \/data_api\/v1(\.[12])?\/conversations\?$/],
    ["/api/v2/knowledge/tags", null],
    ["/data_api/v2/conversations", /^did you mean \/data_api\/v1\/conversations\?$/],
  ] as const)("resource_not_found, 404, for the path %s", async (path, meant) => {
    const answer = await call(host + path, { key });
    expect(answer.status).toBe(404);
    const { details } = expectError(answer, "resource_not_found");
    if (meant === null) expect(details).toBeNull();
    else expect(details).toMatch(meant);
  });

  it("resource_not_found, 404, names the client of the key when it is gone, with null details", async () => {
    const gone = await system.key("gone", SCOPES);
    await system.ops("clients", "delete", "gone");
    for (const operation of OPERATIONS) {
      const answer = await ask(operation, { key: gone });
      expect(answer.status).toBe(404);
      const { message, details } = expectError(answer, "resource_not_found");
      expect(message).toContain("gone");
      expect(details).toBeNull();
    }
  });

  it.each(rows)("%s: another method is 405 with Allow, as bad_request", async (_name, operation) => {
    const { path } = operation;
    const isBoth = path.includes("data-subject-request");
    const reads = isBoth || operation.method === "GET" ? ["GET", "HEAD"] : [];
    const allowed = [...reads, ...(isBoth || operation.method === "POST" ? ["POST"] : [])];
    for (const method of ["PUT", "PATCH", "DELETE", "GET", "POST"]) {
      if (allowed.includes(method)) continue;
      const answer = await call(host + path, { key, method });
      expect(answer.status).toBe(405);
      expect(answer.headers.get("allow")?.split(", ").toSorted()).toEqual(allowed);
      expect(expectError(answer, "bad_request").details).toContain(method);
    }
  });

  it.each(rows)("%s: content_too_large, 413, for a request above 4.0 MB", async (_name, operation) => {
    const { path, method } = operation;
    // fetch sends no body with GET, so the request announces a length.
    const answer = await announce(method, path, 4_000_001);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"type":"content_too_large"');
    expect(answer).toContain('"details":"limit: 4000000 bytes; actual length: 4000001 bytes"');
  });

  const announce = async (method: string, path: string, length: number): Promise<string> => {
    const port = Number(new URL(host).port);
    const head =
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    return (await sendRaw(port, [head], { deadlineMs: 10_000 })).text;
  };

  it("duplicate_resource, 409, for an Idempotency-Key that stood for another request", async () => {
    const trigger = OPERATIONS.find(({ scope }) => scope === "campaigns");
    const send = (phone_number: string): Promise<Answer> => {
      const body = { ...(trigger?.body as object), recipient: { meta_fields: { phone_number } } };
      const headers = { "idempotency-key": "order-1" };
      return call(host + (trigger?.path ?? ""), { key, method: "POST", body, headers });
    };
    const first = await send("+15550199124");
    expect(first.status).toBe(200);
    expect((await send("+15550199124")).body).toEqual(first.body);
    const other = await send("+15550199125");
    expect(other.status).toBe(409);
    expect(expectError(other, "duplicate_resource").details).toContain("Idempotency-Key");
  });

  it.each([
    "v1",
    "v2",
  ])("unprocessable_content, 422, for a %s erasure request that names nobody", async (version) => {
    const url = `${host}/api/${version}/data-subject-request`;
    const answer = await call(url, { key, method: "POST", body: { type: "ERASURE" } });
    expect(answer.status).toBe(422);
    expect(expectError(answer, "unprocessable_content").details).toContain("email");
  });
});

describe("8. Limits", () => {
  it.each(
    rows,
  )("%s: a success has no rate-limit headers where the limit is off", async (_name, operation) => {
    const { status, headers } = await ask(operation);
    expect(status).toBe(200);
    expect([...headers.keys()].filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
  });

  it("each list has an allowance of its own, which the legacy versions share", async () => {
    const fresh = await system.key("fresh", SCOPES);
    const { process, apiUrl } = await system.anotherApi({ RATE_LIMITS: "50/1d" });
    const remaining = async (path: string): Promise<string | null> => {
      const url = `${new URL(apiUrl).origin}${path}?created_since=2026-10-01T00:00:00Z`;
      return (await call(url, { key: fresh })).headers.get("x-ratelimit-remaining");
    };
    expect(await remaining("/api/v2/export/conversations")).toBe("49");
    expect(await remaining("/api/v2/export/messages")).toBe("49");
    expect(await remaining("/data_api/v1/conversations")).toBe("48");
    expect(await remaining("/api/data_api/v1.2/conversations")).toBe("47");
    await process.kill("SIGTERM");
  });
});

describe("7. Errors while the database is away", () => {
  it("internal_server_error, 503, with Retry-After and an error_id in the log, for whatever needs it", async () => {
    const known = await Promise.all(OPERATIONS.map((operation) => ask(operation)));
    expect(known.map(({ status }) => status)).toEqual(OPERATIONS.map(() => 200));
    await system.stack.clickhouse.kill();
    const status = `/api/v2/data-subject-request/${"0".repeat(32)}-0`;
    const reading: Operation[] = [
      ...OPERATIONS.filter(({ scope }) => scope !== "campaigns"),
      { name: "status of an erasure request", method: "GET", path: status, scope: "compliance" },
    ];
    for (const operation of reading) {
      const answer = await ask(operation);
      expect(answer.status, operation.name).toBe(503);
      expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      const [, errorId = ""] =
        ERROR_ID.exec(expectError(answer, "internal_server_error").details ?? "") ?? [];
      await until("it is in the log", 5_000, () => errorId !== "" && logged(errorId));
      expect(answer.text).not.toMatch(/clickhouse|SELECT|ECONN|127\.0\.0\.1/i);
    }
    await system.stack.clickhouse.start();
    await until("pages are served again", 20_000, async () => (await ask(CONVERSATIONS)).status === 200);
  });
});
