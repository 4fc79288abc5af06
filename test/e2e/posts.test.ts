import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { smsTriggerEventSchema } from "@conversation-export/domain";
import { createJobClient, erasureJobId, type JobClient, type JobState } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { createRequestStore, type RequestStore } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, sendRequest } from "../system/send-request.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { startSystem, type System } from "../system/system.ts";
import { createTriggerEvents } from "../system/trigger-events.ts";
import { until, within } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { createSessions } from "../system/warehouse-sessions.ts";

const TRIGGER = "/campaigns/sms/trigger";
const V1 = "/v1/data-subject-request";
const V2 = "/v2/data-subject-request";
const LIMIT = 4_000_000;
/** Part of every address and number here, so that logs can be searched. */
const EMAIL_PART = "noor-of-posts";
const NUMBER_PART = "5550199";

type Options = { key?: string; api?: string; idempotencyKey?: string; headers?: Record<string, string> };

const log = createLogger({ service: "test", level: "error" });

describe("requests that write", () => {
  let system: System;
  let api: ServiceProcess;
  let other: Awaited<ReturnType<System["anotherApi"]>>;
  let queue: JobClient;
  let jobs: RequestStore;
  let acme = "";
  let globex = "";
  let exportOnly = "";
  const sessions = createSessions();

  beforeAll(async () => {
    system = await startSystem("test-posts");
    const { stack } = system;
    queue = createJobClient({ url: stack.redis.url, log });
    await queue.start();
    const session = sessions.open(stack.clickhouse.url("migrator"));
    jobs = createRequestStore({ session, now: Date.now, idSecret: "not used" });
    const scopes = ["compliance", "campaigns"];
    [acme, globex] = await Promise.all([system.key("acme", scopes), system.key("globex", scopes)]);
    exportOnly = await system.key("acme", ["export", "end_users"]);
    [api, other] = await Promise.all([
      system.service("export-api"),
      system.anotherApi({}),
      system.ops("campaigns", "create", "spring", "--client", "acme", "--languages", "en,pt-BR"),
      system.ops("campaigns", "create", "any-language", "--client", "acme"),
      system.ops("campaigns", "create", "other", "--client", "globex"),
    ]);
    await until(
      "triggers are taken",
      30_000,
      async () => (await trigger({ name: "warm up" })).status === 200,
    );
  });
  const erasureState = async (requestId: string): Promise<JobState | undefined> =>
    (await queue.get("erasure", erasureJobId(requestId)))?.state;
  afterAll(async () => {
    await queue?.stop();
    await sessions.close();
    await system?.stop();
  });

  const send = (
    method: string,
    path: string,
    body: unknown,
    { key = acme, api = system.apiUrl, ...more }: Options = {},
  ) => sendRequest({ api, key, method, path, body, ...more });
  const post = (path: string, body: unknown, options?: Options) => send("POST", path, body, options);
  const get = (path: string, options?: Options) => send("GET", path, undefined, options);

  const erase = (name: string, options?: Options) =>
    post(V2, { type: "ERASURE", email: `${EMAIL_PART}-${name}@example.com` }, options);
  const triggerBody = (fields: Record<string, unknown> = {}, others: Record<string, unknown> = {}) => ({
    campaign_key: "spring",
    language: "en",
    recipient: { meta_fields: { phone_number: `+1${NUMBER_PART}123`, ...fields } },
    ...others,
  });
  const trigger = (fields?: Record<string, unknown>, options?: Options) =>
    post(TRIGGER, triggerBody(fields), options);
  const idOf = ({ headers }: Answer): string => headers.get("location")?.replace(`/api${V2}/`, "") ?? "";

  const events = () => createTriggerEvents(system);
  const eventCount = () => events().count();
  const readEvents = () => events().read();
  const rowsOf = async (id: string): Promise<number> =>
    Number(
      await runSql(
        system.stack.clickhouse.url("migrator"),
        "SELECT count() FROM data_subject_requests FINAL WHERE request_id = {id:String}",
        { id },
      ),
    );

  describe("in common", () => {
    const bodies: [path: string, body: unknown][] = [
      [V1, { type: "ERASURE", email: `${EMAIL_PART}@example.com` }],
      [V2, { type: "ERASURE", email: `${EMAIL_PART}@example.com` }],
      [TRIGGER, triggerBody()],
    ];

    it.each(bodies)("%s answers with the headers of a success", async (path, body) => {
      const answer = await post(path, body, { headers: { "x-request-id": "posts-1" } });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("application/json");
      expect(answer.headers.get("cache-control")).toBe("private, no-store");
      expect(answer.headers.get("x-request-id")).toBe("posts-1");
    });

    it.each(bodies)("%s refuses other media types, codings, and what is not JSON", async (path, body) => {
      const refused = { status: 415, type: "bad_request" };
      expect(await post(path, body, { headers: { "content-type": "text/plain" } })).toMatchObject(refused);
      expect(await post(path, body, { headers: { "content-encoding": "gzip" } })).toMatchObject(refused);
      const wrong = { status: 400, type: "bad_request" };
      expect(await post(path, '{"type":')).toMatchObject({ ...wrong, details: "body: is not JSON" });
      expect(await post(path, "[]")).toMatchObject({ ...wrong, details: "body: must be an object" });
      expect(await post(path, '{"__proto__":{"x":1}}')).toMatchObject(wrong);
      expect(await post(path, "[".repeat(path === TRIGGER ? 1_000_000 : 60_000))).toMatchObject(wrong);
      const unknown = await post(path, { ...(body as object), more: `${EMAIL_PART}-value` });
      expect(unknown).toMatchObject({ ...wrong, details: "more: unknown field" });
    });

    it.each(bodies)("%s refuses a body above its limit, announced or not", async (path) => {
      const own = path === TRIGGER ? LIMIT : 65_536;
      const announced = await post(path, " ".repeat(LIMIT + 1));
      expect(announced).toMatchObject({ status: 413, type: "content_too_large" });
      expect(announced.details).toContain(String(LIMIT));
      expect(announced.details).toContain(String(LIMIT + 1));
      expect(announced.headers.get("connection")).toBe("close");

      const answer = await new Promise<{ status: number; body: unknown; sent: number }>((resolve, reject) => {
        let sent = 0;
        const going = httpRequest(
          system.apiUrl + path,
          {
            method: "POST",
            headers: { authorization: `Bearer ${acme}`, "content-type": "application/json" },
          },
          (response) => {
            json(response)
              .then((body) => resolve({ status: response.statusCode ?? 0, body, sent }))
              .catch(reject);
          },
        );
        going.on("error", reject);
        const more = (): void => {
          sent += 65_536;
          if (going.write(Buffer.alloc(65_536, " "))) setImmediate(more);
          else going.once("drain", more);
        };
        more();
      });
      expect(answer).toMatchObject({ status: 413, body: { errors: [{ type: "content_too_large" }] } });
      const text = JSON.stringify(answer.body);
      expect(text).toContain(`limit: ${own} bytes`);
      expect(Number(/actual length: (\d+) bytes/.exec(text)?.[1])).toBeGreaterThan(own);
      expect(await post(path, "{}".padEnd(own))).toMatchObject({ status: 400 });
      expect(await post(path, "{}".padEnd(own + 1))).toMatchObject({ status: 413 });
    });
  });

  describe("erasure requests", () => {
    it("are stored and queued, and say how far they are to their client alone", async () => {
      const email = ` ${EMAIL_PART}-First@Example.com`;
      const identifiers = [{ type: "chatter_id", value: "664f1c2e9b1d8a0012a3b4aa" }];
      const answer = await post(V1, { type: "ERASURE", email, identifiers });
      expect(answer).toMatchObject({ status: 200, body: { email: email.trim() } });
      expect(Object.keys(answer.body)).toEqual(["email"]);
      const id = idOf(answer);
      expect(await rowsOf(id)).toBe(1);
      expect(await erasureState(id)).toBe("waiting");
      const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/) as string;
      for (const version of [V1, V2]) {
        expect((await get(`${version}/${id}`)).body).toEqual({
          request_id: id,
          type: "ERASURE",
          email: email.trim().toLowerCase(),
          identifiers,
          status: "queued",
          received_at: instant,
          updated_at: instant,
        });
      }
      const missing = { status: 404, type: "resource_not_found" };
      expect(await get(`${V2}/${id}`, { key: globex })).toMatchObject(missing);
      expect(await get(`${V2}/${id}`, { key: exportOnly })).toMatchObject({ status: 403 });
      expect(await get(`${V2}/${id.replace(/.-/, "x-")}`)).toMatchObject(missing);
      expect(await get(`${V2}/nothing`)).toMatchObject(missing);
    });

    it("are one request and one entry when ten equal ones come at once, from two processes", async () => {
      const before = (await queue.counts()).erasure;
      const second = (): number => Math.floor(Date.now() / 1_000);
      // Two on both sides of a second's end may be two requests.
      await sleep(1_000 - (Date.now() % 1_000));
      const from = second();
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, at) => erase("at-once", at % 2 === 0 ? {} : { api: other.apiUrl })),
      );
      const most = 1 + second() - from;
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
      const ids = new Set(answers.map(idOf));
      expect(ids.size).toBeLessThanOrEqual(most);
      for (const id of ids) {
        expect(await rowsOf(id)).toBe(1);
        expect((await get(`${V2}/${id}`)).body).toMatchObject({ status: "queued" });
      }
      expect((await queue.counts()).erasure.waiting).toBe(before.waiting + ids.size);
    });

    it("belong to the client, and are new ones when the former is finished", async () => {
      const first = await erase("again");
      const foreign = await erase("again", { key: globex });
      expect(idOf(foreign)).not.toBe(idOf(first));
      expect(idOf(await erase("AGAIN"))).toBe(idOf(first));
      await jobs.setStatus("acme", idOf(first), "completed");
      expect((await get(`${V2}/${idOf(first)}`)).body).toMatchObject({ status: "completed" });
      const second = await erase("again");
      expect(idOf(second)).not.toBe(idOf(first));
      expect(await erasureState(idOf(second))).toBe("waiting");
      expect(idOf(await erase("again", { key: globex }))).toBe(idOf(foreign));
    });

    it("name somebody, or are refused with 422", async () => {
      const nobody = { status: 422, type: "unprocessable_content" };
      expect(await post(V2, { type: "ERASURE" })).toMatchObject(nobody);
      expect(await post(V2, { type: "ERASURE", email: null, identifiers: [] })).toMatchObject(nobody);
      const wrong = await post(V2, {
        type: "ACCESS",
        email: EMAIL_PART,
        identifiers: [{ type: "email", value: 7 }],
      });
      expect(wrong).toMatchObject({ status: 400, type: "bad_request" });
      for (const name of ["type", "email", "identifiers.0.value"])
        expect(wrong.details).toContain(`${name}: `);
      expect(JSON.stringify(wrong.body)).not.toContain(EMAIL_PART);
    });

    it("are 503 while Redis is away, without a trace, and are taken when they come again", async () => {
      await system.stack.redis.stop();
      const stored = (): Promise<string> =>
        system.sql(
          `SELECT count() FROM data_subject_requests FINAL WHERE email = '${EMAIL_PART}-redis@example.com'`,
        );
      try {
        const askedAt = performance.now();
        const refused = await erase("redis");
        expect(performance.now() - askedAt, "ms until it was refused").toBeLessThan(8_000);
        expect(refused).toMatchObject({ status: 503, type: "internal_server_error" });
        expect(refused.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
        expect(refused.details).toMatch(/^error_id: /);
        expect(Number(await stored())).toBe(0);
      } finally {
        await system.stack.redis.start();
      }
      let id = "";
      await until("requests are taken again", 20_000, async () => {
        const answer = await erase("redis");
        id = idOf(answer);
        return answer.status === 200;
      });
      expect(await erasureState(id)).toBe("waiting");
      expect(Number(await stored())).toBe(1);
    });
  });

  describe("SMS triggers", () => {
    it("become one event each, as documented", async () => {
      const fields = { first_name: "Noor", vip: true, orders: 12.5, city: "São Paulo 🙂" };
      const answer = await post(TRIGGER, triggerBody(fields, { language: "PT-br" }));
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.body)).toEqual(["id"]);
      const found = (await readEvents()).filter(({ event }) => event.id === answer.body["id"]);
      expect(found).toHaveLength(1);
      const [{ event, message } = { event: undefined, message: undefined }] = found;
      expect(smsTriggerEventSchema.strict().parse(event)).toEqual(event);
      expect(event).toMatchObject({
        specversion: "1.0",
        type: "sms.trigger_requested",
        subject: "spring",
        clientid: "acme",
        time: event?.data.requested_at,
        data: {
          client_id: "acme",
          campaign_key: "spring",
          language: "PT-br",
          recipient: { meta_fields: { phone_number: `+1${NUMBER_PART}123`, ...fields } },
        },
      });
      expect(Math.abs(Date.now() - Date.parse(event?.time ?? ""))).toBeLessThan(60_000);
      expect(String(message?.key)).toBe(`acme:+1${NUMBER_PART}123`);
      expect(String(message?.headers["content-type"])).toBe("application/cloudevents+json; charset=utf-8");
    });

    it("are refused for what is wrong, and leave no event", async () => {
      const before = await eventCount();
      const wrong = await post(TRIGGER, {
        ...triggerBody({ phone_number: NUMBER_PART, list: [1] }, { language: "e", campaign_key: "" }),
      });
      expect(wrong).toMatchObject({ status: 400, type: "bad_request" });
      for (const name of ["phone_number", "list"]) {
        expect(wrong.details).toContain(`recipient.meta_fields.${name}: `);
      }
      for (const name of ["language", "campaign_key"]) expect(wrong.details).toContain(`${name}: `);
      expect(JSON.stringify(wrong.body)).not.toContain(NUMBER_PART);
      expect(await post(`${TRIGGER}?dry_run=1`, triggerBody())).toMatchObject({ status: 400 });
      expect(await trigger({}, { idempotencyKey: "two words" })).toMatchObject({ status: 400 });
      const missing = { status: 404, type: "resource_not_found" };
      expect(await post(TRIGGER, triggerBody({}, { campaign_key: "unknown" }))).toMatchObject(missing);
      expect(await post(TRIGGER, triggerBody({}, { campaign_key: "other" }))).toMatchObject(missing);
      expect(await trigger({}, { key: globex })).toMatchObject(missing);
      expect(await post(TRIGGER, triggerBody({}, { language: "fr" }))).toMatchObject({
        status: 422,
        type: "unprocessable_content",
      });
      expect(await eventCount()).toBe(before);
      const any = triggerBody({}, { campaign_key: "any-language", language: "fr" });
      expect(await post(TRIGGER, any)).toMatchObject({ status: 200 });
    });

    it("follow a campaign that is made and deleted within seconds", async () => {
      const short = triggerBody({}, { campaign_key: "short" });
      expect(await post(TRIGGER, short)).toMatchObject({ status: 404 });
      await system.ops("campaigns", "create", "short", "--client", "acme");
      await within("it is there", 10_000, async () => (await post(TRIGGER, short)).status === 200);
      await system.ops("campaigns", "delete", "short", "--client", "acme");
      await within("it is gone", 10_000, async () => (await post(TRIGGER, short)).status === 404, 250);
    });

    it("happen once for one key: ten at once, again, from two processes, and after a crash", async () => {
      const before = await eventCount();
      const idempotencyKey = "order-1";
      await until("the other takes triggers", 30_000, async () => {
        return (await trigger({}, { api: other.apiUrl, idempotencyKey })).status === 200;
      });
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          trigger({}, { idempotencyKey, ...(at % 2 === 0 && { api: other.apiUrl }) }),
        ),
      );
      await other.process.kill("SIGKILL");
      answers.push(await trigger({}, { idempotencyKey }));
      expect(answers.map(({ status }) => status)).toEqual(Array(11).fill(200));
      expect(new Set(answers.map(({ body }) => body["id"])).size).toBe(1);
      expect(await eventCount()).toBe(before + 1);

      const fresh = await Promise.all(
        Array.from({ length: 10 }, () => trigger({}, { idempotencyKey: "order-2" })),
      );
      expect(fresh.map(({ status }) => status)).toEqual(Array(10).fill(200));
      expect(await eventCount()).toBe(before + 2);

      expect(await trigger({ name: "another" }, { idempotencyKey })).toMatchObject({
        status: 409,
        type: "duplicate_resource",
      });
      const foreign = triggerBody({}, { campaign_key: "other" });
      expect(await post(TRIGGER, foreign, { key: globex, idempotencyKey })).toMatchObject({ status: 200 });
      expect(await eventCount()).toBe(before + 3);
    });

    it("need Redis only with a key", async () => {
      await system.stack.redis.stop();
      try {
        const before = await eventCount();
        expect(await trigger({}, { idempotencyKey: "redis-1" })).toMatchObject({ status: 503 });
        expect(await eventCount()).toBe(before);
        expect(await trigger()).toMatchObject({ status: 200 });
        expect(await eventCount()).toBe(before + 1);
      } finally {
        await system.stack.redis.start();
      }
      await until("keys are taken again", 20_000, async () => {
        return (await trigger({}, { idempotencyKey: "redis-1" })).status === 200;
      });
    });
  });

  it("leave nothing of the people in the log", async () => {
    await api.kill("SIGTERM");
    expect(await api.exited).toEqual({ code: 0, signal: null });
    const text = readFileSync(join(system.logFolder, "export-api.log"), "utf8");
    expect(text).toContain("/api/campaigns/sms/trigger");
    expect(text).toContain("request failed");
    expect(text).not.toMatch(new RegExp(EMAIL_PART, "i"));
    expect(text).not.toContain(NUMBER_PART);
    expect(text).not.toContain("664f1c2e9b1d8a0012a3b4aa");
  });
});
