import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisCommand } from "../system/redis-command.ts";
import { type Answer, sendRequest } from "../system/send-request.ts";
import { isFullSize } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { createTriggerEvents } from "../system/trigger-events.ts";
import { until, within } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";

type Options = { api?: string; idempotencyKey?: string };

describe("SMS triggers without Kafka", () => {
  let system: System;
  let acme = "";
  const eventCount = () => createTriggerEvents(system).count();
  const readEvents = () => createTriggerEvents(system).read();

  beforeAll(async () => {
    system = await startSystem("test-posts-outage");
    acme = await system.key("acme", ["compliance", "campaigns"]);
    await system.ops("campaigns", "create", "spring", "--client", "acme");
    await system.service("export-api");
    await until("triggers are taken", 30_000, async () => (await trigger()).status === 200);
  });
  afterAll(() => system?.stop());

  const post = (path: string, body: unknown, { api = system.apiUrl, ...options }: Options = {}) =>
    sendRequest({ api, key: acme, method: "POST", path, body, ...options });
  const trigger = (fields: Record<string, unknown> = {}, options?: Options) =>
    post(
      "/campaigns/sms/trigger",
      {
        campaign_key: "spring",
        language: "en",
        recipient: { meta_fields: { phone_number: "+15550199123", ...fields } },
      },
      options,
    );
  const erase = (name: string, options?: Options) =>
    post("/v2/data-subject-request", { type: "ERASURE", email: `${name}@example.com` }, options);
  const endClaims = async (): Promise<void> => {
    const script = `local ended = 0 for _, key in ipairs(redis.call('KEYS', 'conversation-export:idempotency:*')) do if redis.call('HEXISTS', key, 'token') == 1 then redis.call('HSET', key, 'leased_until', 0) ended = ended + 1 end end return ended`;
    expect(await redisCommand(system.stack.redis.url, `EVAL "${script}" 0`)).toBe(":1");
  };

  it("are 503 within 10 seconds while Kafka hangs, and happen once all the same", async () => {
    const idempotencyKey = "frozen-1";
    const before = await eventCount();
    const timed = async (options?: Options): Promise<{ answer: Answer; ms: number }> => {
      const from = performance.now();
      const answer = await trigger({ name: "frozen" }, options);
      return { answer, ms: performance.now() - from };
    };
    await whileStopped(system.stack.kafka, async () => {
      for (const options of [{ idempotencyKey }, { idempotencyKey }, {}]) {
        const { answer, ms } = await timed(options);
        expect(answer).toMatchObject({ status: 503, type: "internal_server_error" });
        expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
        expect(ms).toBeLessThan(10_000);
      }
      // No request queues behind one that hangs.
      expect((await timed()).ms).toBeLessThan(4_000);
      expect(await erase("kafka-frozen")).toMatchObject({ status: 200 });
    });
    let id: unknown;
    await until("the trigger is taken", 60_000, async () => {
      const { answer } = await timed({ idempotencyKey });
      id = answer.body["id"];
      return answer.status === 200;
    });
    const frozen = (await readEvents()).filter(
      ({ event }) => event.data.recipient.meta_fields["name"] === "frozen",
    );
    expect(frozen.map(({ event }) => event.id)).toEqual([id]);
    expect(await eventCount()).toBe(before + 1);
  });

  it("keep the body of their key when Kafka hangs longer than a claim holds", async () => {
    const idempotencyKey = "frozen-2";
    const fields = { name: "frozen for long" };
    const other = { name: "another" };
    await whileStopped(system.stack.kafka, async () => {
      expect(await trigger(fields, { idempotencyKey })).toMatchObject({ status: 503 });
      // The reduced size does not wait for the claim to expire.
      if (!isFullSize) await endClaims();
      // A repetition waits for the running request; once the claim has expired, it is rejected at once.
      await within("the claim is taken over", 40_000, async () => {
        const from = performance.now();
        expect(await trigger(fields, { idempotencyKey })).toMatchObject({ status: 503 });
        return performance.now() - from < 1_000;
      });
      expect(await trigger(other, { idempotencyKey })).toMatchObject({ status: 409 });
    });
    let id: unknown;
    await until("the trigger is taken", 60_000, async () => {
      const answer = await trigger(fields, { idempotencyKey });
      id = answer.body["id"];
      return answer.status === 200;
    });
    expect(await trigger(other, { idempotencyKey })).toMatchObject({ status: 409 });
    const frozen = (await readEvents()).filter(
      ({ event }) => event.data.recipient.meta_fields["name"] === fields.name,
    );
    expect(new Set(frozen.map(({ event }) => event.id))).toEqual(new Set([id]));
  });

  it("are 503 while there is no Kafka, whose absence hinders neither start nor end of the service", async () => {
    await system.stack.kafka.kill();
    const other = await system.anotherApi({});
    try {
      for (const options of [{ api: other.apiUrl }, { api: other.apiUrl, idempotencyKey: "gone-1" }]) {
        const from = performance.now();
        expect(await trigger({}, options)).toMatchObject({ status: 503 });
        expect(performance.now() - from).toBeLessThan(10_000);
      }
      expect(await erase("kafka-gone", { api: other.apiUrl })).toMatchObject({ status: 200 });
      const second = await system.anotherApi({});
      const leaving = performance.now();
      await second.process.kill("SIGTERM");
      expect(await second.process.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - leaving).toBeLessThan(10_000);
    } finally {
      await system.stack.kafka.start();
    }
    for (const apiUrl of [other.apiUrl, system.apiUrl]) {
      await until("triggers are taken again", 60_000, async () => {
        return (await trigger({}, { api: apiUrl, idempotencyKey: "gone-1" })).status === 200;
      });
    }
    await other.process.kill("SIGTERM");
  });
});
