import { randomUUID } from "node:crypto";
import type { SmsTriggerEvent } from "@conversation-export/domain";
import type { Claim, IdempotencyStore } from "@conversation-export/queue";
import { createLogger, ServiceError } from "@conversation-export/runtime";
import type { CampaignRow } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { ERRORS } from "../http/errors.ts";
import { serve } from "../http/json-body.fixture.ts";
import { createSmsTrigger, type SmsTriggerDeps } from "./sms-trigger.ts";

const PATH = "/api/campaigns/sms/trigger";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const BODY = {
  campaign_key: "spring",
  language: "en",
  recipient: { meta_fields: { phone_number: "+15551234567", name: "Ida", vip: true } },
};
const log = createLogger({ service: "test", level: "silent" });
const away = (code: string) => new ServiceError(code, "away", { retryable: true });

type Kept = { work: string; token: string; id: string; leased: boolean; result?: string };

/** A test ends their leases. */
const createClaims = () => {
  const claims = new Map<string, Kept>();
  const state: { trouble?: Error } = {};
  let taken = 0;
  const guard = async <T>(work: () => T): Promise<T> => {
    await Promise.resolve();
    if (state.trouble !== undefined) throw state.trouble;
    return work();
  };
  const store: IdempotencyStore = {
    claim: (scope, key, work) =>
      guard((): Claim => {
        const found = claims.get(scope + key);
        if (found !== undefined && found.work !== work) return { state: "other" };
        if (found?.result !== undefined) return { state: "done", result: found.result };
        if (found?.leased === true) return { state: "running" };
        const token = String((taken += 1));
        const id = found?.id ?? randomUUID();
        claims.set(scope + key, { work, token, id, leased: true });
        return { state: "claimed", token, fresh: found === undefined, id };
      }),
    complete: (scope, key, token, result) =>
      guard(() => {
        const found = claims.get(scope + key);
        if (found?.token === token) found.result = result;
        return found?.token === token;
      }),
    release: (scope, key, token) =>
      guard(() => {
        if (claims.get(scope + key)?.token === token) claims.delete(scope + key);
      }),
    abandon: (scope, key, token) =>
      guard(() => {
        const found = claims.get(scope + key);
        if (found?.token === token) claims.set(scope + key, { ...found, token: "", leased: false });
      }),
  };
  const endLeases = (): void => {
    for (const claim of claims.values()) claim.leased = false;
  };
  return { store, claims, state, endLeases };
};

const campaign = (overrides: Partial<CampaignRow> = {}): CampaignRow => ({
  clientId: "acme",
  key: "spring",
  languages: [],
  deleted: false,
  createdAt: "2026-10-01T00:00:00.000Z",
  ...overrides,
});

const serveTrigger = async (overrides: Partial<SmsTriggerDeps> = {}, rows = [campaign()]) => {
  const events: SmsTriggerEvent[] = [];
  const lookups: string[] = [];
  const claims = createClaims();
  const endpoint = createSmsTrigger({
    campaigns: {
      find: (clientId, key) => {
        lookups.push(`${clientId} ${key}`);
        return Promise.resolve(rows.find((row) => row.clientId === clientId && row.key === key) ?? null);
      },
    },
    idempotency: claims.store,
    publisher: { publish: (event) => Promise.resolve(void events.push(event)) },
    log,
    now: () => 1_791_072_000_000,
    waitMs: 300,
    publishMs: 300,
    ...overrides,
  });
  const { post } = await serve([endpoint]);
  const trigger = (body: unknown = BODY, key?: string, clientId = "acme") =>
    post(PATH, body, { clientId, ...(key !== undefined && { headers: { "idempotency-key": key } }) });
  return { trigger, events, lookups, claims, rows };
};

describe("POST campaigns/sms/trigger", () => {
  it("publishes one event a request and answers with its id", async () => {
    const { trigger, events } = await serveTrigger();
    const first = await trigger();
    const second = await trigger();
    expect(first).toMatchObject({ status: 200, body: { id: expect.stringMatching(UUID) } });
    expect(events.map(({ id }) => ({ id }))).toEqual([first.body, second.body]);
    expect(events[0]?.id).not.toBe(events[1]?.id);
    expect(events[0]).toMatchObject({
      type: "sms.trigger_requested",
      clientid: "acme",
      subject: "spring",
      data: { recipient: BODY.recipient, language: "en", requested_at: "2026-10-04T00:00:00.000000Z" },
    });
  });

  it("names every wrong field, and no value", async () => {
    const { trigger, events } = await serveTrigger();
    const answer = await trigger({
      campaign_key: "a b",
      language: "english please",
      recipient: { meta_fields: { phone_number: "555 secret", other: ["secret"] } },
      recipients: "secret",
    });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ type: "bad_request" }] } });
    for (const name of [
      "campaign_key",
      "language",
      "recipient.meta_fields.phone_number",
      "recipient.meta_fields.other",
      "recipients",
    ]) {
      expect(answer.details).toContain(`${name}: `);
    }
    expect(JSON.stringify(answer.body)).not.toContain("secret");
    expect(events).toEqual([]);
  });

  it("refuses what is not registered, is deleted, or is another client's with 404", async () => {
    const { trigger, events } = await serveTrigger({}, [
      campaign(),
      campaign({ key: "gone", deleted: true }),
    ]);
    const missing = { status: 404, body: { errors: [{ type: "resource_not_found" }] } };
    expect(await trigger({ ...BODY, campaign_key: "other" })).toMatchObject(missing);
    expect(await trigger({ ...BODY, campaign_key: "gone" })).toMatchObject(missing);
    expect(await trigger(BODY, undefined, "globex")).toMatchObject(missing);
    expect(await trigger(BODY, "a-key", "globex")).toMatchObject(missing);
    expect(events).toEqual([]);
  });

  it("refuses a language that the campaign does not have with 422, whatever its case", async () => {
    const { trigger } = await serveTrigger({}, [campaign({ languages: ["en", "pt-BR"] })]);
    expect(await trigger({ ...BODY, language: "PT-br" })).toMatchObject({ status: 200 });
    const refused = await trigger({ ...BODY, language: "pt" }, "a-key");
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ type: "unprocessable_content" }] } });
    expect(refused.details).toBe("language: the campaign has only en, pt-BR");
    expect(await trigger(BODY, "a-key")).toMatchObject({ status: 200 });
  });

  it("asks for a campaign once while the answer is fresh, and again afterwards", async () => {
    const { trigger, lookups, rows } = await serveTrigger({ campaignCacheMs: 1_500 });
    await Promise.all(Array.from({ length: 5 }, () => trigger()));
    expect(lookups).toHaveLength(1);
    rows.length = 0;
    await expect.poll(async () => (await trigger()).status).toBe(404);
    expect(lookups).toHaveLength(2);
  });

  it("publishes once for one key, also for ten requests at once", async () => {
    const { trigger, events } = await serveTrigger({ waitMs: 5_000 });
    const answers = await Promise.all(Array.from({ length: 10 }, () => trigger(BODY, "order-1")));
    const again = await trigger(
      { ...BODY, recipient: { meta_fields: { vip: true, name: "Ida", phone_number: "+15551234567" } } },
      "order-1",
    );
    expect([...answers, again].map(({ status }) => status)).toEqual(Array(11).fill(200));
    expect(new Set([...answers, again].map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(events).toHaveLength(1);
    await trigger(BODY, "order-1", "acme");
    await trigger(BODY, "order-2");
    expect(events).toHaveLength(2);
    expect(events[1]?.id).not.toBe(events[0]?.id);
  });

  it("refuses a key with another body with 409, of another client not", async () => {
    const { trigger, events } = await serveTrigger({}, [campaign(), campaign({ clientId: "globex" })]);
    await trigger(BODY, "k");
    expect(await trigger({ ...BODY, language: "fr" }, "k")).toMatchObject({
      status: 409,
      body: { errors: [{ type: "duplicate_resource" }] },
      details: ERRORS.DuplicateResource.example,
    });
    expect(await trigger({ ...BODY, language: "fr" }, "k", "globex")).toMatchObject({ status: 200 });
    expect(events).toHaveLength(2);
  });

  it.each(["", "with space", "é".repeat(2), "k".repeat(256)])("refuses the key %j with 400", async (key) => {
    const { trigger } = await serveTrigger();
    const answer = await trigger(BODY, key);
    expect(answer).toMatchObject({ status: 400, details: expect.stringContaining("Idempotency-Key") });
  });

  it("gives a repetition the id of the first when the note of it was lost", async () => {
    const { trigger, events, claims } = await serveTrigger();
    await trigger(BODY, "k");
    for (const claim of claims.claims.values()) delete claim.result;
    claims.endLeases();
    expect(await trigger(BODY, "k")).toMatchObject({ status: 200, body: { id: events[0]?.id } });
    expect(events.map(({ id }) => id)).toEqual([events[0]?.id, events[0]?.id]);
  });

  it("makes another event of a key and body that come again when the key is forgotten", async () => {
    const { trigger, events, claims } = await serveTrigger();
    await trigger(BODY, "k");
    claims.claims.clear();
    await trigger(BODY, "k");
    expect(events[1]?.id).not.toBe(events[0]?.id);
  });

  it("keeps the body of a key whose event may still be written when a repetition cannot send", async () => {
    const warnings: string[] = [];
    const slow = Promise.withResolvers<void>();
    const sent: string[] = [];
    const outcomes = [() => slow.promise, () => Promise.reject(away("bus_unavailable"))];
    const { trigger, claims, rows } = await serveTrigger({
      log: createLogger({
        service: "test",
        level: "warn",
        destination: { write: (line) => void warnings.push(line) },
      }),
      campaignCacheMs: 1,
      publisher: {
        publish: ({ id }) => {
          sent.push(id);
          return outcomes.shift()?.() ?? Promise.resolve();
        },
      },
    });
    const other = { ...BODY, language: "fr" };
    expect(await trigger(BODY, "k")).toMatchObject({ status: 503 });
    claims.endLeases();
    expect(await trigger(BODY, "k")).toMatchObject({ status: 503 });
    expect(await trigger(other, "k")).toMatchObject({ status: 409 });
    const campaigns = rows.splice(0);
    await expect.poll(async () => (await trigger(BODY, "k")).status).toBe(404);
    expect(await trigger(other, "k")).toMatchObject({ status: 409 });
    rows.push(...campaigns);

    slow.resolve();
    await expect.poll(() => warnings.join("")).toContain("after its idempotency key was taken over");
    await expect.poll(async () => (await trigger(BODY, "k")).status).toBe(200);
    expect(sent).toHaveLength(3);
    expect(new Set(sent).size).toBe(1);
  });

  it("keeps the body of a key whose event Kafka would not take after it was sent", async () => {
    const sent: string[] = [];
    const { trigger } = await serveTrigger({
      publisher: {
        publish: ({ id }) =>
          sent.push(id) === 1 ? Promise.reject(new ServiceError("produce", "refused")) : Promise.resolve(),
      },
    });
    expect(await trigger(BODY, "k")).toMatchObject({ status: 500 });
    expect(await trigger({ ...BODY, language: "fr" }, "k")).toMatchObject({ status: 409 });
    expect(await trigger(BODY, "k")).toMatchObject({ status: 200, body: { id: sent[0] } });
    expect(sent).toEqual([sent[0], sent[0]]);
  });

  it("needs Redis only for a key", async () => {
    const { trigger, claims, events } = await serveTrigger();
    claims.state.trouble = away("redis_unavailable");
    expect(await trigger(BODY, "k")).toMatchObject({ status: 503 });
    expect(events).toEqual([]);
    expect(await trigger()).toMatchObject({ status: 200 });
  });

  it("answers 503 while Kafka is away, and leaves the key free", async () => {
    let isAway = true;
    const published: string[] = [];
    const { trigger, claims } = await serveTrigger({
      publisher: {
        publish: ({ id }) =>
          isAway ? Promise.reject(away("bus_unavailable")) : Promise.resolve(void published.push(id)),
      },
    });
    expect(await trigger()).toMatchObject({ status: 503 });
    expect(await trigger(BODY, "k")).toMatchObject({ status: 503 });
    expect(claims.claims.size).toBe(0);
    isAway = false;
    expect(await trigger(BODY, "k")).toMatchObject({ status: 200, body: { id: published[0] } });
    expect(published).toHaveLength(1);
  });

  it("stops waiting for a slow acknowledgement and keeps the key until it comes", async () => {
    const acknowledged = Promise.withResolvers<void>();
    const events: string[] = [];
    const { trigger, claims } = await serveTrigger({
      publisher: {
        publish: ({ id }) => {
          events.push(id);
          return acknowledged.promise;
        },
      },
    });
    const slow = await trigger(BODY, "k");
    expect(slow).toMatchObject({ status: 503 });
    expect(slow.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await trigger(BODY, "k")).toMatchObject({ status: 503 });
    expect(events).toHaveLength(1);
    acknowledged.resolve();
    await expect.poll(() => [...claims.claims.values()][0]?.result).toBe(events[0]);
    expect(await trigger(BODY, "k")).toMatchObject({ status: 200, body: { id: events[0] } });
    expect(events).toHaveLength(1);
  });
});
