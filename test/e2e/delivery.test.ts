import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { readMetric } from "../system/metrics-text.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { bySize, isFullSize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { walk } from "../compare/walk.ts";
import { type BusEvent, createSample } from "../sample/index.ts";

const CONVERSATIONS = bySize(500, 20_000);
/** Too large for all buffers between ClickHouse and a reader that pauses. */
const BULKY = 10_200;
const WINDOW = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z";
const BULK_WINDOW = "created_since=2026-10-01T00:00:00Z&created_to=2026-10-02T00:00:00Z";

const noise = (index: number): string =>
  Array.from({ length: 300 }, (_, n) => `word-${((index * 300 + n) * 2_654_435_761) % 99_991}`).join(" ");

const bulkyEvents = function* (): Generator<BusEvent> {
  for (let index = 0; index < BULKY; index += 1) {
    const id = `bulky-${String(index).padStart(5, "0")}`;
    const date = new Date(Date.UTC(2026, 9, 1) + Math.floor(index / 3)).toISOString();
    const data = { _id: id, date_created: date, inquiry_summary: noise(index) };
    yield handMade({ kind: "conversation", client: "bulk", id, time: "2026-10-02T00:00:00Z", data });
  }
};

let system: System;
let api: ServiceProcess;
const keys = new Map<string, string>();
const keyOf = (client: string): string => keys.get(client) ?? "";

beforeAll(async () => {
  const seed = seedOfRun("delivery");
  system = await startSystem("test-delivery");
  for (const client of ["acme", "bulk", "other", "limited"])
    keys.set(client, await system.key(client, ["export", "end_users"]));
  const [ingest, started] = await Promise.all([system.service("ingest"), system.service("export-api")]);
  api = started;
  const delivery = createDelivery(system);
  await delivery.send(
    createSample({ seed, conversations: CONVERSATIONS, messagesPerConversation: 4, clients: ["acme"] }),
  );
  await delivery.send(bulkyEvents());
  await system.caughtUp(120_000);
  await until("a watermark is known", 30_000, async () => {
    const response = await ask(`/v2/export/conversations?${WINDOW}&page_size=100`, "acme");
    return response.headers.has("x-export-watermark");
  });
  await ingest.kill("SIGTERM");
});
afterAll(() => system?.stop());

const ask = async (
  path: string,
  client: string,
  headers: Record<string, string> = {},
  base = system.apiUrl,
): Promise<{ status: number; headers: Headers; text: string }> => {
  const response = await fetch(base + path, {
    headers: { authorization: `Bearer ${keyOf(client)}`, ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

const open = async (
  path: string,
  client: string,
  headers: Record<string, string> = {},
  base = system.apiUrl,
): Promise<IncomingMessage> => {
  const call = http.get(base + path, { headers: { authorization: `Bearer ${keyOf(client)}`, ...headers } });
  // A reset connection also raises an error on the request.
  call.on("error", () => {});
  const [response] = (await once(call, "response")) as [IncomingMessage];
  response.pause();
  return response;
};

const bytesOf = async (response: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

type Received = { readonly bytes: Buffer; readonly clean: boolean };

const readThroughKill = async (responses: readonly IncomingMessage[]): Promise<Received[]> => {
  // Before the kill: a small answer may break before the kill has returned, and says so only to a listener.
  const answers = responses.map((response) => ({
    response,
    end: new Promise<boolean>((resolve) => {
      response.once("end", () => resolve(true));
      response.once("error", () => resolve(false));
    }),
  }));
  const read = async ({ response, end }: (typeof answers)[number]): Promise<Received> => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.resume();
    const clean = await end;
    return { bytes: Buffer.concat(chunks), clean };
  };
  await system.stack.clickhouse.kill();
  try {
    return await Promise.all(answers.map(read));
  } finally {
    await system.stack.clickhouse.start();
    await until("ClickHouse answers again", 20_000, async () => {
      return (await ask(`/v2/export/conversations?${BULK_WINDOW}&page_size=100`, "bulk")).status === 200;
    });
  }
};

const LINES = { accept: "application/x-ndjson" };
type Trailer = { trailer: { count: number; watermark: string | null } };

const splitLines = (text: string): { records: string[]; trailer: Trailer } => {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the last line has no end");
  const trailer = JSON.parse(lines.pop() ?? "") as Trailer;
  return { records: lines, trailer };
};

describe("a window as lines", () => {
  it.each([
    ["conversations", "created"],
    ["conversations", "updated"],
    ["messages", "created"],
  ])("holds the records of all pages of %s by %s, and a trailer", async (list, filter) => {
    const path = `/v2/export/${list}?${WINDOW.replaceAll("created", filter)}`;
    const pages = await walk(`${system.apiUrl}${path}&page_size=1000`, keyOf("acme"));
    const { status, headers, text } = await ask(path, "acme", LINES);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("application/x-ndjson");
    const { records, trailer } = splitLines(text);
    expect(records.length).toBeGreaterThan(100);
    expect(records).toEqual(pages);
    expect(trailer).toEqual({
      trailer: { count: pages.length, watermark: headers.get("x-export-watermark") },
    });
    expect(trailer.trailer.watermark).toMatch(/^2\d{3}-.*Z$/);
  });

  it("of nothing is the trailer alone", async () => {
    const { text } = await ask(`/v2/export/conversations?${WINDOW}`, "other", LINES);
    expect(splitLines(text)).toMatchObject({ records: [], trailer: { trailer: { count: 0 } } });
  });

  it("that breaks has no trailer, and goes on at the date of its last whole line; nor has a page or gzip an end", async () => {
    const path = `/v2/export/conversations?${BULK_WINDOW}`;
    const [lines, page, coded] = await Promise.all([
      // Lines ignore the page size.
      open(`${path}&page_size=100`, "bulk", LINES),
      open(path, "bulk"),
      open(path, "bulk", { ...LINES, "accept-encoding": "gzip" }),
    ]);
    for (const { statusCode } of [lines, page, coded]) expect(statusCode).toBe(200);
    const received = await readThroughKill([lines, page, coded]);
    expect(received.map(({ clean }) => clean)).toEqual([false, false, false]);
    const [ofLines, ofPage, ofCoded] = received.map(({ bytes }) => bytes);
    expect(() => JSON.parse(String(ofPage)) as unknown).toThrow(SyntaxError);
    expect(() => gunzipSync(ofCoded ?? "")).toThrow("unexpected end of file");
    const whole = String(ofLines).split("\n").slice(0, -1);
    expect(whole.length).toBeGreaterThan(0);
    expect(whole.length).toBeLessThan(BULKY);
    const records = whole.map((line) => JSON.parse(line) as { _id: string; date_created: string });
    const resumeAt = (records.at(-1)?.date_created ?? "").replace("+00:00", "Z");
    const resumed = BULK_WINDOW.replace(/created_since=[^&]*/, `created_since=${resumeAt}`);
    const rest = splitLines((await ask(`/v2/export/conversations?${resumed}`, "bulk", LINES)).text);
    const ids = [...records, ...rest.records.map((line) => JSON.parse(line) as { _id: string })];
    expect(new Set(ids.map(({ _id }) => _id)).size).toBe(BULKY);
    // Only records of that instant are repeated.
    expect(ids.length - BULKY).toBeLessThanOrEqual(3);
  });

  it("waits in ClickHouse and not in memory for a reader who does not read, and is cancelled there when he goes", async () => {
    const memory = async (): Promise<number> =>
      (await readMetric(api.metricsUrl, "process_resident_memory_bytes")) ?? 0;
    await ask(`/v2/export/conversations?${BULK_WINDOW}`, "bulk", LINES);
    const before = await memory();
    const responses = await Promise.all(
      [1, 2, 3, 4].map(() => open(`/v2/export/conversations?${BULK_WINDOW}`, "bulk", LINES)),
    );
    const sent = (): Promise<string> =>
      system.sql(
        "SELECT count(), sum(read_rows) FROM system.processes WHERE user = 'reader' AND query LIKE '%FROM conversations%'",
      );
    let progress = "";
    await until(
      "all four stand still in ClickHouse",
      30_000,
      async () => {
        const former = progress;
        progress = await sent();
        return Number(progress.split("\t")[0]) >= 4 && progress === former;
      },
      500,
    );
    const during = await memory();
    for (const response of responses) response.destroy();
    await until("none is sent any more", 20_000, async () => {
      return (await readMetric(api.metricsUrl, "conversation_export_api_pages_in_flight")) === 0;
    });
    await until("ClickHouse has given them up", 10_000, async () => (await sent()).startsWith("0\t"));
    // The whole window four times is more than 120 MB.
    expect(during - before).toBeLessThan(64 * 1024 * 1024);
  });
});

describe("a reader who pauses", () => {
  // ClickHouse itself gives up after 30 seconds; its users are set to wait longer.
  it.runIf(isFullSize).each(["application/json", "application/x-ndjson"])(
    "for 40 seconds gets all of it as %s",
    async (accept) => {
      const response = await open(`/v2/export/conversations?${BULK_WINDOW}`, "bulk", { accept });
      await sleep(40_000);
      const text = (await bytesOf(response)).toString();
      expect(response.complete).toBe(true);
      expect(text.split('"_id":"bulky-').length - 1).toBe(accept === "application/json" ? 10_000 : BULKY);
    },
  );
});

describe("compression", () => {
  it.each([
    ["zstd", "application/x-ndjson", zstdDecompressSync],
    ["br", "application/json", brotliDecompressSync],
    ["gzip", "application/x-ndjson", gunzipSync],
  ] as const)("by %s of %s gives the same bytes, fewer of them", async (coding, accept, decode) => {
    const path = `/v2/export/conversations?${BULK_WINDOW}`;
    const plain = await open(path, "bulk", { accept });
    const coded = await open(path, "bulk", { accept, "accept-encoding": coding });
    expect(plain.headers["content-encoding"]).toBeUndefined();
    expect(coded.headers["content-encoding"]).toBe(coding);
    expect(coded.headers["vary"]).toBe("accept, accept-encoding");
    const [expected, body] = await Promise.all([bytesOf(plain), bytesOf(coded)]);
    if (accept === LINES.accept) expect(splitLines(expected.toString()).records).toHaveLength(BULKY);
    expect(body.length).toBeLessThan(expected.length / 2);
    // The link's position is signed anew with the same secret.
    expect(decode(body).equals(expected)).toBe(true);
  });
});

describe("limits", () => {
  const path = `/v2/export/conversations?${WINDOW}&page_size=100`;
  type Api = Awaited<ReturnType<System["anotherApi"]>>;
  let apis: Api[] = [];

  beforeAll(async () => {
    apis = await Promise.all([1, 2].map(() => system.anotherApi({ RATE_LIMITS: "20/1h,1000/1d" })));
  });

  it("are exact for fifty requests at once to two processes", async () => {
    // Connections, keys and the Redis script are ready before counting starts.
    for (const { apiUrl } of apis) expect((await ask(path, "other", {}, apiUrl)).status).toBe(200);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => ask(path, "acme", {}, apis[n % 2]?.apiUrl)),
    );
    for (const { process } of apis) {
      const alone = await readMetric(process.metricsUrl, "conversation_export_api_rate_limit_unshared_total");
      expect(alone, "requests for which Redis did not answer in time").toBe(0);
    }
    const passed = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect([passed.length, refused.length]).toEqual([20, 30]);
    const remaining = passed.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")));
    expect(remaining.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    for (const { headers } of passed) {
      expect(headers.get("x-ratelimit-limit")).toBe("20");
      const reset = Number(headers.get("x-ratelimit-reset"));
      expect(reset).toBeGreaterThan(Date.now() / 1000 + 3_000);
      expect(reset).toBeLessThan(Date.now() / 1000 + 3_700);
    }
    for (const { headers, text } of refused) {
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(3_000);
      expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(3_600);
      expect(JSON.parse(text)).toEqual({
        errors: [
          {
            type: "rate_limit_exceeded",
            message: "Too many requests",
            details: "allowed: 20 requests per 1 hour",
          },
        ],
      });
    }
    const lists = await ask(`/v2/export/messages?${WINDOW}&page_size=100`, "acme", {}, apis[0]?.apiUrl);
    expect(lists.headers.get("x-ratelimit-remaining")).toBe("19");
    expect((await ask(path, "other", {}, apis[0]?.apiUrl)).status).toBe(200);
  });

  it("can be set for a client, and count a window of lines once", async () => {
    await system.ops("clients", "set", "limited", "--rate-limit", "conversations=3/1h");
    const apiUrl = apis[0]?.apiUrl;
    const statuses: number[] = [];
    for (let n = 0; n < 5; n += 1) statuses.push((await ask(path, "limited", LINES, apiUrl)).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    expect((await ask(path, "bulk", {}, apiUrl)).headers.get("x-ratelimit-limit")).toBe("20");
  });

  it("are kept by each process alone while Redis is away, and the pages go on", async () => {
    const [first] = apis as [Api];
    const alone = async (): Promise<number> =>
      (await readMetric(first.process.metricsUrl, "conversation_export_api_rate_limit_unshared_total")) ?? 0;
    const before = await alone();
    await system.stack.redis.kill();
    const statuses: number[] = [];
    for (let n = 0; n < 22; n += 1) statuses.push((await ask(path, "acme", {}, first.apiUrl)).status);
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 200), 429, 429]);
    expect((await alone()) - before).toBe(22);
    // A process may also start without Redis.
    const late = await system.anotherApi({ RATE_LIMITS: "5/1h" });
    expect((await ask(path, "acme", {}, late.apiUrl)).status).toBe(200);
    await system.stack.redis.start();
    await until("limits are shared again", 20_000, async () => {
      const before = await readMetric(
        late.process.metricsUrl,
        "conversation_export_api_rate_limit_unshared_total",
      );
      await ask(path, "bulk", {}, late.apiUrl);
      return (
        (await readMetric(late.process.metricsUrl, "conversation_export_api_rate_limit_unshared_total")) ===
        before
      );
    });
    await late.process.kill("SIGTERM");
  });

  it("on pages at a time let nobody starve and answer 429 to who holds all of its own in the end", async () => {
    const { process, apiUrl } = await system.anotherApi({
      MAX_PAGES: "3",
      MAX_PAGES_PER_CLIENT: "2",
      PAGE_WAIT_MS: "1500",
    });
    const bulk = `/v2/export/conversations?${BULK_WINDOW}`;
    const held = await Promise.all([1, 2].map(() => open(bulk, "bulk", {}, apiUrl)));
    const waiting = ask(bulk, "bulk", {}, apiUrl);
    await until("the third waits", 5_000, async () => {
      return (await readMetric(process.metricsUrl, "conversation_export_api_pages_waiting")) === 1;
    });
    expect((await ask(path, "acme", {}, apiUrl)).status).toBe(200);
    const refused = await waiting;
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("10");
    expect(refused.text).toMatch(
      /"type":"rate_limit_exceeded".*"details":"allowed: 2 at a time; the wait was too long"/,
    );
    expect(
      await readMetric(process.metricsUrl, "conversation_export_api_rate_limited_total", { limit: "slots" }),
    ).toBe(1);
    const next = ask(bulk, "bulk", {}, apiUrl);
    await until("the fourth waits", 5_000, async () => {
      return (await readMetric(process.metricsUrl, "conversation_export_api_pages_waiting")) === 1;
    });
    for (const response of held) response.destroy();
    expect((await next).status).toBe(200);
    await process.kill("SIGTERM");
  });
});

describe("a watermark", () => {
  it("stands on every list, and is the same in a process that starts while ingest is stopped", async () => {
    const paths = [
      `/v2/export/conversations?${WINDOW}&page_size=100`,
      `/v2/export/conversations?${WINDOW.replaceAll("created", "updated")}&page_size=100`,
      `/v2/export/messages?${WINDOW}&page_size=100`,
      `/v2/end-users/`,
      `/data_api/v1/conversations?${WINDOW}&page_size=100`,
      `/data_api/v1.2/messages?${WINDOW}&page_size=100`,
    ];
    const read = (base: string): Promise<(string | null)[]> =>
      Promise.all(
        paths.map(async (path) => (await ask(path, "acme", {}, base)).headers.get("x-export-watermark")),
      );
    const first = await read(system.apiUrl);
    for (const text of first) expect(text).toMatch(/^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const { process, apiUrl } = await system.anotherApi({});
    expect(await read(apiUrl)).toEqual(first);
    await process.kill("SIGTERM");
  });
});
