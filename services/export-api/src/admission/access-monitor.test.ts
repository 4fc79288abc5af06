import { once } from "node:events";
import http from "node:http";
import { Readable } from "node:stream";
import { ServiceError } from "@conversation-export/runtime";
import { type ApiClient, type Reader, WarehouseError } from "@conversation-export/warehouse";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { unauthorized } from "../http/api-error.ts";
import { AUTHORIZED, CLIENT, createListReader, createTestApp, listen, pageOf } from "../http/app.fixture.ts";
import { monitorAccess } from "./access-monitor.ts";

const EVERY_MS = 20;
const away = new WarehouseError("warehouse_unavailable", "ECONNREFUSED", true, undefined);

const endless = (): Readable => {
  const records = new Readable({ read() {} });
  records.push('{"_id":"a"}\n');
  return records;
};

const serve = async () => {
  const { reader } = createListReader({});
  const state: { client: ApiClient | null; away: boolean; asked: number } = {
    client: { ...CLIENT, scopes: ["export", "end_users"] },
    away: false,
    asked: 0,
  };
  const page = () => Promise.resolve(pageOf(endless()));
  const open = () => Promise.resolve({ bytes: endless(), next: null });
  const notEnded = (): never => {
    throw new Error("not ended");
  };
  const steps = {
    conversations: () => open,
    messages: () => open,
    endUsers: () => open,
    changes: () => open,
  };
  const endlessReader: Reader = {
    ...reader,
    conversationsByCreation: page,
    conversationsByUpdate: page,
    messagesByCreation: page,
    endUsers: () => Promise.resolve({ end: notEnded, records: endless() }),
    changes: () => Promise.resolve({ end: notEnded, records: endless() }),
    lines: steps,
    parquet: steps,
    findKey: () => {
      state.asked += 1;
      return state.away ? Promise.reject(away) : Promise.resolve(state.client);
    },
  };
  const test = createTestApp(endlessReader, { keyCacheMs: EVERY_MS });
  return { ...test, state, port: await listen(test.app) };
};

const begin = async (port: number, path: string, accept: string) => {
  const call = http.get({ host: "127.0.0.1", port, path, headers: { ...AUTHORIZED, accept } });
  call.on("error", () => undefined);
  const [response] = (await once(call, "response")) as [http.IncomingMessage];
  response.resume();
  const ended = new Promise<string>((resolve) => {
    response.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    response.once("end", () => resolve("a whole answer"));
  });
  return { response, ended };
};

const LINES = "application/x-ndjson";
const PARQUET = "application/vnd.apache.parquet";
const JSON_TYPE = "application/json";
const SINCE = "created_since=2024-03-01T00:00:00Z";

describe("an answer under way", () => {
  it.each([
    ["lines", `/api/v2/export/conversations?${SINCE}`, LINES],
    ["lines by update", "/api/v2/export/conversations?updated_since=2024-03-01T00:00:00Z", LINES],
    ["lines of messages", `/api/v2/export/messages?${SINCE}`, LINES],
    ["a page", `/api/v2/export/conversations?${SINCE}`, JSON_TYPE],
    ["a page of a legacy version", `/data_api/v1/messages?${SINCE}`, JSON_TYPE],
    ["end users", "/api/v2/end-users/", JSON_TYPE],
    ["changes as lines", "/api/v2/export/changes/conversations", LINES],
    ["a page of changes", "/api/v2/export/changes/messages", JSON_TYPE],
    ["Parquet", `/api/v2/export/messages?${SINCE}`, PARQUET],
    ["changes as Parquet", "/api/v2/export/changes/end_users", PARQUET],
    ["end users as Parquet", "/api/v2/end-users/", PARQUET],
  ])("%s: is reset when the key is revoked", async (_, path, accept) => {
    const { state, port, metricsText, logLines } = await serve();
    const { response, ended } = await begin(port, path, accept);
    expect(response.statusCode).toBe(200);
    const asked = state.asked;
    await expect.poll(() => state.asked, { interval: 5 }).toBeGreaterThan(asked + 1);
    expect(response.complete).toBe(false);
    state.client = null;
    expect(await ended).toBe("ECONNRESET");
    await expect.poll(metricsText).toMatch(/broken_pages_total\{reason="client_not_allowed",.*\} 1/);
    expect(logLines.some(({ level }) => level === "error")).toBe(false);
  });

  it.each<[string, (client: ApiClient) => ApiClient | null]>([
    ["the key expires", () => null],
    ["the client is deleted", (client) => ({ ...client, clientDeleted: true })],
    ["the scope is taken away", (client) => ({ ...client, scopes: ["end_users"] })],
  ])("is reset when %s", async (_, change) => {
    const { state, port } = await serve();
    const { ended } = await begin(port, `/api/v2/export/conversations?${SINCE}`, LINES);
    state.client = change({ ...CLIENT, scopes: ["export", "end_users"] });
    expect(await ended).toBe("ECONNRESET");
  });

  it("goes on while another right changes, and while the key cannot be looked up for a moment", async () => {
    const { state, port } = await serve();
    const { response, ended } = await begin(port, `/api/v2/export/conversations?${SINCE}`, LINES);
    state.client = { ...CLIENT, scopes: ["export"], rateLimits: {} };
    state.away = true;
    const asked = state.asked;
    await expect.poll(() => state.asked, { interval: 5 }).toBeGreaterThan(asked + 1);
    state.away = false;
    const before = state.asked;
    await expect.poll(() => state.asked, { interval: 5 }).toBeGreaterThan(before + 1);
    expect(response.complete || response.destroyed).toBe(false);
    state.client = null;
    expect(await ended).toBe("ECONNRESET");
  });
});

describe("watching a key", () => {
  it("asks no more when the answer has ended", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let asked = 0;
    const access = monitorAccess({ ask: async () => void (asked += 1), everyMs: 1_000 });
    await vi.advanceTimersByTimeAsync(2_500);
    expect(asked).toBe(2);
    access.end();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toBe(2);
    expect(access.lost.aborted).toBe(false);
  });

  it("says what was lost, once and for good", async () => {
    const refused = unauthorized("unknown");
    let isAllowed = true;
    const ask = (): Promise<void> => (isAllowed ? Promise.resolve() : Promise.reject(refused));
    const access = monitorAccess({ ask, everyMs: 60_000 });
    onTestFinished(() => access.end());
    await access.check();
    isAllowed = false;
    await expect(access.check()).rejects.toBe(refused);
    isAllowed = true;
    await expect(access.check()).rejects.toBe(refused);
    expect(access.lost.reason).toBe(refused);
  });

  it("asks again when the warehouse is away for a moment", async () => {
    let failures = 2;
    const ask = (): Promise<void> =>
      failures-- > 0
        ? Promise.reject(new ServiceError("warehouse_unavailable", "away", { retryable: true }))
        : Promise.resolve();
    const access = monitorAccess({ ask, everyMs: 60_000 });
    onTestFinished(() => access.end());
    await access.check();
    expect(failures).toBe(-1);
    expect(access.lost.aborted).toBe(false);
  });
});
