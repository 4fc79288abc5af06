import { createMemoryLimiter, type RateLimiter } from "@conversation-export/queue";
import { createMetrics } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import type { ApiError } from "../http/api-error.ts";
import type { LimitName } from "@conversation-export/warehouse";
import { createRateLimit, createRateLimitMetrics, describeRate } from "./rate-limit.ts";

const NOW = 1_700_000_000_000;
const SECOND = { requests: 2, seconds: 1 };
const DEFAULTS = {
  conversations: [SECOND],
  messages: [SECOND, { requests: 3, seconds: 60 }],
  end_users: [],
  data_subject_request: [SECOND],
  data_subject_request_status: [SECOND],
  sms_trigger: [SECOND],
};

const createLimit = () => {
  const memory = createMemoryLimiter({ maxKeys: 100, now: () => NOW });
  const limiter: RateLimiter = { consume: (key, windows) => Promise.resolve(memory.consume(key, windows)) };
  const metrics = createMetrics({ service: "test" });
  const limit = createRateLimit({ limiter, defaults: DEFAULTS, metrics: createRateLimitMetrics(metrics) });
  const ask = async (clientId: string, name: LimitName, rateLimits = {}) => {
    const sent: Record<string, unknown> = {};
    const reply = { headers: (values: object) => Object.assign(sent, values) as never };
    const error = await limit.admit({ clientId, rateLimits }, name, reply).catch((thrown: unknown) => thrown);
    return { sent, answer: (error as ApiError | undefined)?.answer };
  };
  return { ask, metrics };
};

it("sets the headers, and refuses with the allowed rate and Retry-After", async () => {
  const { ask, metrics } = createLimit();
  const headers = { "x-ratelimit-limit": "2", "x-ratelimit-reset": "1700000001" };
  expect(await ask("acme", "conversations")).toEqual({ sent: { ...headers, "x-ratelimit-remaining": "1" } });
  expect(await ask("acme", "conversations")).toEqual({ sent: { ...headers, "x-ratelimit-remaining": "0" } });
  const refused = await ask("acme", "conversations");
  expect(refused.sent).toEqual({ ...headers, "x-ratelimit-remaining": "0" });
  expect(refused.answer).toMatchObject({
    status: 429,
    type: "rate_limit_exceeded",
    details: expect.stringContaining("2 requests per 1 second"),
    headers: { "retry-after": "1" },
  });
  expect(await metrics.text()).toMatch(
    /conversation_export_api_rate_limited_total\{.*limit="conversations".*\} 1/,
  );
});

it("counts every client and every limit by itself", async () => {
  const { ask } = createLimit();
  for (const clientId of ["acme", "other", "acme:messages"]) {
    for (const name of ["conversations", "sms_trigger"] as const) {
      expect((await ask(clientId, name)).sent).toMatchObject({ "x-ratelimit-remaining": "1" });
    }
  }
});

it("takes a client's own windows before the defaults, and sets nothing without a window", async () => {
  const { ask } = createLimit();
  const own = { conversations: [{ requests: 7, seconds: 60 }], sms_trigger: [] };
  expect((await ask("acme", "conversations", own)).sent).toMatchObject({ "x-ratelimit-limit": "7" });
  expect((await ask("acme", "messages", own)).sent).toMatchObject({ "x-ratelimit-limit": "2" });
  for (const name of ["sms_trigger", "end_users"] as const) {
    for (let round = 0; round < 5; round++) expect(await ask("acme", name, own)).toEqual({ sent: {} });
  }
});

it.each([
  [1, 1, "1 request per 1 second"],
  [10, 1, "10 requests per 1 second"],
  [100, 90, "100 requests per 90 seconds"],
  [100, 60, "100 requests per 1 minute"],
  [5, 7_200, "5 requests per 2 hours"],
  [15_000, 86_400, "15000 requests per 1 day"],
])("%i in %i s is %s", (requests, seconds, text) => {
  expect(describeRate({ requests, seconds })).toBe(text);
});
