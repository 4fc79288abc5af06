import { createMetrics } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createListReader, createTestApp, AUTHORIZED } from "../http/app.fixture.ts";
import { createClientBound } from "./client-bound.ts";
import { createRateLimitMetrics } from "./rate-limit.ts";

const slotsOf = (most: number) => {
  const used = new Map<string, number>();
  const take = (key: string) => {
    const count = used.get(key) ?? 0;
    if (count >= most) return Promise.resolve(null);
    used.set(key, count + 1);
    return Promise.resolve(() => void used.set(key, (used.get(key) ?? 0) - 1));
  };
  return { take, used };
};

it("refuses what is beyond the bound of a client, says which and when to come again", async () => {
  const registry = createMetrics({ service: "test" });
  const metrics = createRateLimitMetrics(registry);
  const bound = createClientBound({ what: "pages", most: 2, metrics, slots: slotsOf(2) });
  const [end] = await Promise.all([bound.begin("acme"), bound.begin("acme")]);
  await expect(bound.begin("acme")).rejects.toMatchObject({
    answer: { status: 429, details: "allowed: 2 pages at a time", headers: { "retry-after": "10" } },
  });
  expect(await registry.text()).toContain(
    'conversation_export_api_rate_limited_total{limit="pages",service="test"} 1',
  );
  await bound.begin("globex");
  end();
  await bound.begin("acme");
});

it("counts a page while it is read, a stream as both, and gives them back however it ends", async () => {
  const slots = slotsOf(1);
  const taken: string[] = [];
  const boundOf = (what: "pages" | "streams") => {
    const metrics = createRateLimitMetrics(createMetrics({ service: "test" }));
    const bound = createClientBound({ what, most: 1, metrics, slots });
    return {
      begin: async (client: string) => {
        const end = await bound.begin(client);
        taken.push(`${what}:${client}`);
        return end;
      },
    };
  };
  const bounds = { pages: boundOf("pages"), streams: boundOf("streams") };
  const { app } = createTestApp(createListReader({}).reader, { bounds });
  const status = async (accept: string, query = "created_since=2024-03-01T00:00:00Z"): Promise<number> => {
    const url = `/api/v2/export/messages?${query}`;
    return (await app.inject({ url, headers: { ...AUTHORIZED, host: "export.example", accept } })).statusCode;
  };
  expect(await status("application/json")).toBe(200);
  expect(await status("application/x-ndjson")).toBe(200);
  expect(await status("application/json", "unknown=1")).toBe(400);
  expect(taken).toEqual(["pages:acme", "pages:acme", "streams:acme", "pages:acme"]);
  expect([...slots.used.values()]).toEqual([0, 0]);

  slots.used.set("pages:acme", 1);
  expect(await status("application/json")).toBe(429);
  slots.used.set("pages:acme", 0).set("streams:acme", 1);
  expect(await status("application/x-ndjson")).toBe(429);
  expect(slots.used.get("pages:acme")).toBe(0);
});
