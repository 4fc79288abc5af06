import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, call } from "../conformance/call.ts";
import { callFrom } from "../conformance/call-from.ts";
import { expectError } from "../conformance/expect-error.ts";
import { CAMPAIGN, EXPORT_OPERATIONS, type Operation, OPERATIONS } from "../conformance/operations.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";

/** An empty variable counts as absent. */
const DEFAULTS = {
  RATE_LIMITS: "",
  RATE_LIMITS_DATA_SUBJECT_REQUEST: "",
  RATE_LIMITS_SMS_TRIGGER: "",
  AUTH_FAILURE_LIMITS: "",
};
const SCOPES = ["export", "end_users", "compliance", "campaigns"] as const;
const MAX = { limit: 1_000_000, reset: 99_999_999_999, retryAfter: 86_400 };
const READ_TABLES = [
  "conversations",
  "conversation_updates",
  "messages",
  "end_users",
  "data_subject_requests",
  "campaigns",
];

const rows = OPERATIONS.map((operation, at) => [operation.name, operation, at] as const);
const limited = ["conversations", "messages", "end-users", "sms"].map((part) => {
  const found = OPERATIONS.find(({ path }) => path.includes(part));
  if (found === undefined) throw new Error(`no operation for ${part}`);
  return [found.name, found] as const;
});

type Document = {
  readonly paths: Record<string, { servers?: unknown; get?: unknown; post?: unknown }>;
  readonly components: {
    readonly responses: Record<string, { content: { "application/json": { example: unknown } } }>;
  };
};

let system: System;
let host = "";
let document: Document;

const keyOf = async (client: string, operation?: Operation): Promise<string> => {
  const key = await system.key(client, SCOPES);
  if (operation === undefined || operation.scope === "campaigns") {
    await system.ops("campaigns", "create", CAMPAIGN, "--client", client);
  }
  return key;
};

beforeAll(async () => {
  system = await startSystem("test-conformance-defaults");
  const { apiUrl } = await system.anotherApi(DEFAULTS);
  host = new URL(apiUrl).origin;
  document = (await call(`${apiUrl}/openapi.json`)).body as Document;
});
afterAll(() => system?.stop());

const ask = ({ method, path, body }: Operation, key: string, headers = {}): Promise<Answer> =>
  call(host + path, { key, method, body, headers });

describe("5. Authentication, at the default settings", () => {
  it("every operation of the document needs the key, for each of its methods", async () => {
    const calls = Object.entries(document.paths).flatMap(([path, item]) => {
      const address = host + (item.servers === undefined ? "/api" : "") + path.replace("{id}", "00000000");
      const methods = [
        ...(item.get === undefined ? [] : ["GET", "HEAD"]),
        ...(item.post === undefined ? [] : ["POST"]),
      ];
      return methods.map((method) => ({ method, address }));
    });
    expect(calls.length).toBeGreaterThan(20);
    for (const [at, { method, address }] of calls.entries()) {
      const { status, headers } = await callFrom(`127.0.1.${at + 1}`, address, { method });
      const isOpen = address.endsWith("/api/openapi.json");
      expect(status, `${method} ${address}`).toBe(isOpen ? 200 : 401);
      expect(headers.has("www-authenticate")).toBe(!isOpen);
    }
  });

  it("20 failures a minute are 401; further ones are 429, but for a key that is known and other addresses", async () => {
    const key = await system.key("known", SCOPES);
    const url = `${host}/api/v2/end-users/`;
    const known = { headers: { authorization: `Bearer ${key}` } };
    expect((await callFrom("127.0.3.1", url, known)).status).toBe(200);
    const answers = [];
    for (let failure = 1; failure <= 23; failure += 1) answers.push(await callFrom("127.0.3.1", url));
    expect(answers.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 20 }, () => 401),
      ...Array.from({ length: 3 }, () => 429),
    ]);
    for (const answer of answers.slice(20)) {
      const { details } = expectError(answer, "rate_limit_exceeded");
      expect(details).toBe("allowed: 20 failed authentications per 1 minute");
      expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d?$/);
      expect(Number(answer.headers.get("retry-after"))).toBeLessThanOrEqual(60);
    }
    expect((await callFrom("127.0.3.1", url, known)).status).toBe(200);
    expect((await callFrom("127.0.3.2", url)).status).toBe(401);
  });
});

describe("8. Limits, at the default settings", () => {
  it.each(limited)("%s: 10 requests a second are let in, and no more", async (name, operation) => {
    const key = await keyOf(`burst ${name}`.replaceAll(/\W+/g, "-"), operation);
    const answers = await Promise.all(Array.from({ length: 60 }, () => ask(operation, key)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    const windows = new Map<string, number[]>();
    for (const { status, headers } of answers.filter((answer) => answer.status !== 429)) {
      expect(status).toBe(200);
      const reset = headers.get("x-ratelimit-reset") ?? "";
      windows.set(reset, [...(windows.get(reset) ?? []), Number(headers.get("x-ratelimit-remaining"))]);
    }
    const full = new Set(refused.map(({ headers }) => headers.get("x-ratelimit-reset") ?? ""));
    for (const [reset, left] of windows) {
      const inOrder = left.toSorted((a, b) => b - a);
      expect(inOrder).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0].slice(0, inOrder.length));
      if (full.has(reset)) expect(inOrder).toHaveLength(10);
    }
    for (const answer of refused) {
      expectError(answer, "rate_limit_exceeded");
      expect(answer.body).toEqual(
        document.components.responses["RateLimitExceeded"]?.content["application/json"].example,
      );
      expect(answer.headers.get("retry-after")).toBe("1");
    }
    await until("the window is over", 10_000, async () => (await ask(operation, key)).status === 200);
  });

  it("erasure requests: one a second and a hundred an hour are let in, their status is read as often as a list", async () => {
    const key = await keyOf("erasing", undefined);
    const url = `${host}/api/v2/data-subject-request`;
    const send = (email: string): Promise<Answer> =>
      call(url, { key, method: "POST", body: { type: "ERASURE", email } });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => send(`p${at}@example.com`)));
    const taken = answers.find(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(6);
    for (const answer of refused) {
      expect(expectError(answer, "rate_limit_exceeded").details).toBe("allowed: 1 request per 1 second");
      expect(answer.headers.get("retry-after")).toBe("1");
    }
    const location = host + (taken?.headers.get("location") ?? "");
    const reads = await Promise.all(Array.from({ length: 8 }, () => call(location, { key })));
    expect(reads.map(({ status }) => status)).toEqual(Array(8).fill(200));
  });

  it.each(
    rows,
  )("%s: at the default settings each success has the rate-limit headers, in their ranges", async (name, operation) => {
    const key = await keyOf(`headers ${name}`.replaceAll(/\W+/g, "-"), operation);
    const isRead = operation.method === "GET";
    const isExport = EXPORT_OPERATIONS.includes(operation);
    const before = Math.floor(Date.now() / 1000);
    const answers = [
      await ask(operation, key),
      ...(isRead ? [await ask({ ...operation, method: "HEAD" as "GET" }, key)] : []),
      ...(isExport ? [await ask(operation, key, { accept: "application/x-ndjson" })] : []),
    ];
    for (const { status, headers } of answers) {
      expect(status).toBe(200);
      const number = (header: string): number => {
        const text = headers.get(header) ?? "";
        expect(text, header).toMatch(/^\d+$/);
        return Number(text);
      };
      const allowed = operation.scope === "compliance" ? 1 : 10;
      expect(number("x-ratelimit-limit")).toBe(allowed);
      expect(number("x-ratelimit-remaining")).toBeLessThan(allowed);
      expect(number("x-ratelimit-reset")).toBeGreaterThanOrEqual(before);
      expect(number("x-ratelimit-reset")).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + 1);
      expect(number("x-ratelimit-reset")).toBeLessThanOrEqual(MAX.reset);
      expect(headers.has("retry-after")).toBe(false);
    }
  });

  it("Retry-After comes with 429, from 1 to 86400, and with no other refusal of a request", async () => {
    const key = await keyOf("refused");
    const poor = await system.key("refused", []);
    await system.key("gone", SCOPES);
    const gone = await system.key("gone", SCOPES);
    await system.ops("clients", "delete", "gone");
    const users = `${host}/api/v2/end-users/`;
    const trigger = OPERATIONS.find(({ scope }) => scope === "campaigns");
    const sms = (options: object): Promise<Answer> =>
      call(host + (trigger?.path ?? ""), { key, method: "POST", body: trigger?.body, ...options });
    const once = { "idempotency-key": "once" };
    expect((await sms({ headers: once })).status).toBe(200);
    const other = {
      ...(trigger?.body as object),
      recipient: { meta_fields: { phone_number: "+15550199125" } },
    };
    const requests = `${host}/api/v2/data-subject-request`;
    const answers = {
      400: await call(`${users}?colour=red`, { key }),
      401: await callFrom("127.0.4.1", users),
      403: await call(users, { key: poor }),
      404: await call(users, { key: gone }),
      405: await call(users, { key, method: "DELETE" }),
      409: await sms({ headers: once, body: other }),
      413: await sms({ body: `"${"x".repeat(4_000_001)}"` }),
      415: await sms({ headers: { "content-type": "text/plain" } }),
      422: await call(requests, { key, method: "POST", body: { type: "ERASURE" } }),
    };
    for (const [status, answer] of Object.entries(answers)) {
      expect(answer.status).toBe(Number(status));
      expect(answer.headers.has("retry-after"), status).toBe(false);
    }
    const burst = await Promise.all(Array.from({ length: 60 }, () => call(users, { key })));
    for (const { status, headers } of burst) {
      expect(headers.has("retry-after")).toBe(status === 429);
      if (status !== 429) continue;
      expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(MAX.retryAfter);
    }
    expect(burst.some(({ status }) => status === 429)).toBe(true);
  });
});

describe("7. Errors, at the default settings", () => {
  const logged = (errorId: string): boolean =>
    readFileSync(join(system.logFolder, `export-api-${new URL(host).port}.log`), "utf8")
      .split("\n")
      .some((line) => line.includes(errorId) && line.includes('"level":"error"'));

  it("internal_server_error, 500, whatever operation meets a fault, with an error_id of the log", async () => {
    const keys = await Promise.all(
      rows.map(([name]) => system.key(`fault ${name}`.replaceAll(/\W+/g, "-"), SCOPES)),
    );
    const exchange = async (): Promise<void> => {
      for (const table of READ_TABLES) await system.sql(`EXCHANGE TABLES ${table} AND ${table}_bare`);
    };
    for (const table of READ_TABLES) {
      const bare = "(client_id String) ENGINE = ReplacingMergeTree ORDER BY client_id";
      await system.sql(`CREATE TABLE ${table}_bare ${bare}`);
    }
    await exchange();
    try {
      for (const [name, operation, at] of rows) {
        const answer = await ask(operation, keys[at] ?? "");
        expect(answer.status, `${name}: ${answer.text}`).toBe(500);
        expect(answer.headers.has("retry-after")).toBe(false);
        const { details } = expectError(answer, "internal_server_error");
        const [, errorId = ""] = /^error_id: ([0-9a-f-]{36})$/.exec(details ?? "") ?? [];
        await until("it is in the log", 5_000, () => errorId !== "" && logged(errorId));
        expect(answer.text).not.toMatch(/clickhouse|SELECT|client_id|127\.0\.0\.1/i);
      }
    } finally {
      await exchange();
    }
  });
});
