import { namesOf, subjectText } from "@conversation-export/domain";
import { type ErasureData, erasureJob, type JobClient } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { DataSubjectRequest, RequestStore } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { createDataSubjectRequests, type RequestCaps } from "./data-subject-request.ts";
import { type Answer, serve } from "../http/json-body.fixture.ts";

const V1 = "/api/v1/data-subject-request";
const V2 = "/api/v2/data-subject-request";

const NOW = Date.UTC(2026, 9, 4, 23, 58, 30);

const createDeps = (caps: RequestCaps = { open: 1_000, identifiersPerDay: 5_000 }) => {
  const stored = new Map<string, DataSubjectRequest>();
  const queued: ErasureData[] = [];
  const steps: string[] = [];
  const trouble: { redis?: Error; queue?: Error; store?: Error } = {};
  const requests: Pick<RequestStore, "find" | "open" | "setStatus"> = {
    find: (clientId, requestId) => Promise.resolve(stored.get(`${clientId} ${requestId}`) ?? null),
    open: (clientId, subject, admit) => {
      if (trouble.store !== undefined) return Promise.reject(trouble.store);
      const same = [...stored.values()].find(
        (one) => one.clientId === clientId && subjectText(one.subject) === subjectText(subject),
      );
      steps.push("open");
      if (same !== undefined) return Promise.resolve(same);
      const own = [...stored.values()].filter((one) => one.clientId === clientId);
      admit?.({ open: own.length, namedToday: own.reduce((sum, { named }) => sum + named, 0) });
      const requestId = `${String(stored.size).padStart(32, "0")}-0`;
      const at = Date.UTC(2026, 9, 4);
      const times = { receivedAt: at, updatedAt: at, hiddenAt: null };
      const named = namesOf(subject).length;
      const made: DataSubjectRequest = {
        clientId,
        requestId,
        type: "ERASURE",
        subject,
        named,
        status: "received",
        deleted: null,
        ...times,
      };
      stored.set(`${clientId} ${requestId}`, made);
      return Promise.resolve(made);
    },
    setStatus: (clientId, requestId, status) => {
      const found = stored.get(`${clientId} ${requestId}`);
      if (found !== undefined) stored.set(`${clientId} ${requestId}`, { ...found, status });
      steps.push(status);
      return Promise.resolve(found !== undefined);
    },
  };
  const jobs: Pick<JobClient, "add" | "checkServer"> = {
    checkServer: () =>
      trouble.redis === undefined
        ? Promise.resolve({ version: "8.0.1", maxmemoryPolicy: "noeviction", appendOnly: true, problems: [] })
        : Promise.reject(trouble.redis),
    add: (type, data) => {
      if (trouble.queue !== undefined) return Promise.reject(trouble.queue);
      queued.push(erasureJob.data.parse(data));
      steps.push("add");
      return Promise.resolve({ id: type.name, added: true });
    },
  };
  const capped: string[] = [];
  const onCapped = (cap: string) => void capped.push(cap);
  return { requests, jobs, stored, queued, steps, trouble, caps, capped, onCapped, now: () => NOW };
};

const start = async (caps?: RequestCaps) => {
  const deps = createDeps(caps);
  return { deps, ...(await serve(createDataSubjectRequests(deps))) };
};

const idIn = ({ headers }: Answer): string => headers.get("location")?.replace(`${V2}/`, "") ?? "";

describe("POST data-subject-request", () => {
  it.each([V1, V2])("%s answers with the e-mail and the place of the status", async (path) => {
    const { deps, post, get } = await start();
    const answer = await post(path, { type: "ERASURE", email: " Noor@example.com" });
    expect(answer).toMatchObject({ status: 200, body: { email: "Noor@example.com" } });
    expect(Object.keys(answer.body as object)).toEqual(["email"]);
    expect(deps.steps).toEqual(["open", "add", "queued"]);
    expect(deps.queued).toEqual([{ clientId: "acme", requestId: idIn(answer) }]);
    const status = {
      request_id: idIn(answer),
      type: "ERASURE",
      email: "noor@example.com",
      status: "queued",
      received_at: "2026-10-04T00:00:00.000000+00:00",
      updated_at: "2026-10-04T00:00:00.000000+00:00",
    };
    for (const version of [V1, V2]) {
      expect(await get(`${version}/${idIn(answer)}`)).toMatchObject({ status: 200, body: status });
    }
    expect((await get(`${V2}/${idIn(answer)}`)).body).toEqual(status);
  });

  it("takes identifiers alone, and shows them", async () => {
    const { post, get } = await start();
    const identifiers = [{ type: "chatter_id", value: "c-1" }];
    const answer = await post(V2, { type: "ERASURE", identifiers });
    expect(answer).toMatchObject({ status: 200, body: { email: null } });
    expect((await get(`${V2}/${idIn(answer)}`)).body).toMatchObject({ email: null, identifiers });
  });

  it("adds an entry of the same id for the same content again", async () => {
    const { deps, post } = await start();
    const first = await post(V2, { type: "ERASURE", email: "a@b" });
    const second = await post(V1, { type: "ERASURE", email: "A@B ", identifiers: [] });
    expect(idIn(second)).toBe(idIn(first));
    expect(deps.queued).toHaveLength(2);
    expect(deps.steps.filter((step) => step === "queued")).toHaveLength(1);
  });

  it("refuses a body that names nobody with 422, of the wrong shape with 400", async () => {
    const { deps, post } = await start();
    expect(await post(V2, { type: "ERASURE" })).toMatchObject({
      status: 422,
      body: { errors: [{ type: "unprocessable_content" }] },
      details: expect.stringContaining("email"),
    });
    const wrong = await post(V2, {
      type: "ERASE",
      email: "secret",
      identifiers: [{ type: "x" }],
      why: "secret",
    });
    expect(wrong).toMatchObject({ status: 400, body: { errors: [{ type: "bad_request" }] } });
    for (const name of ["type", "email", "identifiers.0.type", "why"])
      expect(wrong.details).toContain(`${name}: `);
    expect(JSON.stringify(wrong.body)).not.toContain("secret");
    expect(await post(`${V2}?a=1`, { type: "ERASURE", email: "a@b" })).toMatchObject({
      status: 400,
      details: "a: unknown parameter",
    });
    expect(deps.stored.size).toBe(0);
  });

  it("refuses one open request too many, says when there is room, and takes the same content again", async () => {
    const { deps, post } = await start({ open: 2, identifiersPerDay: 5_000 });
    for (const email of ["a@b", "b@b"]) await post(V2, { type: "ERASURE", email });
    const refused = await post(V1, { type: "ERASURE", email: "c@b" });
    expect(refused).toMatchObject({
      status: 429,
      body: { errors: [{ type: "rate_limit_exceeded" }] },
      details: "allowed: 2 open erasure requests; open: 2; again: when one of them has finished",
    });
    expect(refused.headers.get("retry-after")).toBe("300");
    expect(await post(V2, { type: "ERASURE", email: "B@b" })).toMatchObject({ status: 200 });
    expect(await post(V2, { type: "ERASURE", email: "c@b" }, { clientId: "globex" })).toMatchObject({
      status: 200,
    });
    expect(deps.stored.size).toBe(3);
    expect(deps.capped).toEqual(["open_data_subject_requests"]);
  });

  it("refuses more identifiers than a client may name in a day", async () => {
    const { deps, post } = await start({ open: 1_000, identifiersPerDay: 5 });
    const of = (name: string, count: number) => ({
      type: "ERASURE",
      email: `${name}@b`,
      identifiers: Array.from({ length: count }, (_, at) => ({ type: "chatter_id", value: `${name}-${at}` })),
    });
    expect(await post(V2, of("a", 2))).toMatchObject({ status: 200 });
    const refused = await post(V2, of("b", 2));
    expect(refused).toMatchObject({
      status: 429,
      details:
        "allowed: 5 addresses and ids per 1 day in erasure requests; today: 3; in this request: 3; " +
        "again: 2026-10-05T00:00:00.000Z",
    });
    expect(refused.headers.get("retry-after")).toBe("90");
    expect(await post(V2, of("b", 1))).toMatchObject({ status: 200 });
    expect(deps.capped).toEqual(["data_subject_identifiers"]);
  });

  it("takes 65,536 bytes and no more", async () => {
    const { post } = await start();
    const body = JSON.stringify({ type: "ERASURE", email: "a@b" });
    expect(await post(V2, body.padEnd(65_536))).toMatchObject({ status: 200 });
    const refused = await post(V2, body.padEnd(65_537));
    expect(refused).toMatchObject({
      status: 413,
      details: "limit: 65536 bytes; actual length: 65537 bytes",
    });
  });

  it("stores nothing while Redis is away, however often it is repeated", async () => {
    const { deps, post } = await start({ open: 3, identifiersPerDay: 3 });
    deps.trouble.redis = new ServiceError("redis_unavailable", "away", { retryable: true });
    const body = { type: "ERASURE", email: "a@b" };
    for (let time = 0; time < 5; time += 1) expect(await post(V2, body)).toMatchObject({ status: 503 });
    expect(deps.stored.size).toBe(0);
    delete deps.trouble.redis;
    expect(await post(V2, body)).toMatchObject({ status: 200 });
  });

  it("answers 503 when Redis fails behind the row, keeps the row, and finishes it later", async () => {
    const { deps, post, get } = await start();
    deps.trouble.queue = new ServiceError("redis_unavailable", "away", { retryable: true });
    const body = { type: "ERASURE", email: "a@b" };
    const refused = await post(V2, body);
    expect(refused).toMatchObject({ status: 503, body: { errors: [{ type: "internal_server_error" }] } });
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    const [row] = deps.stored.values();
    expect(row).toMatchObject({ status: "received" });
    delete deps.trouble.queue;
    expect(idIn(await post(V2, body))).toBe(row?.requestId);
    expect(deps.stored.size).toBe(1);
    expect(await get(`${V2}/${row?.requestId}`)).toMatchObject({ body: { status: "queued" } });
  });

  it("queues nothing while the warehouse is away", async () => {
    const { deps, post } = await start();
    deps.trouble.store = new ServiceError("warehouse_unavailable", "away", { retryable: true });
    expect(await post(V2, { type: "ERASURE", email: "a@b" })).toMatchObject({ status: 503 });
    expect(deps.queued).toEqual([]);
  });
});

describe("GET data-subject-request", () => {
  it("gives a receipt of a completed request, which names nobody", async () => {
    const { deps, post, get } = await start();
    const id = idIn(await post(V2, { type: "ERASURE", email: "a@b" }));
    const [[key, stored] = ["", undefined]] = [...deps.stored];
    if (stored === undefined) throw new Error("no request");
    expect((await get(`${V2}/${id}`)).body).not.toHaveProperty("receipt");
    const subject = { email: null, identifiers: [] };
    deps.stored.set(key, { ...stored, subject, status: "completed", deleted: { messages: 3, landing: 4 } });
    const { body } = await get(`${V2}/${id}`);
    expect(body).toMatchObject({
      email: null,
      status: "completed",
      receipt: {
        verified_at: "2026-10-04T00:00:00.000000+00:00",
        deleted_rows: { messages: 3, landing: 4 },
        not_reached: expect.arrayContaining([expect.objectContaining({ until: expect.any(String) })]),
      },
    });
  });

  it("knows only the caller's own requests", async () => {
    const { post, get } = await start();
    const id = idIn(await post(V2, { type: "ERASURE", email: "a@b" }));
    expect(await get(`${V2}/${id}`)).toMatchObject({ status: 200 });
    const missing = { status: 404, body: { errors: [{ type: "resource_not_found", details: null }] } };
    expect(await get(`${V2}/${id}`, "globex")).toMatchObject(missing);
    for (const other of [id.replace("-0", "-1"), "x", "%00", "a%2Fb", `${id}'`]) {
      expect(await get(`${V2}/${other}`)).toMatchObject(missing);
    }
  });
});
