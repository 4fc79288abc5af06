import { afterEach, describe, expect, it, vi } from "vitest";
import { createClient } from "./client.ts";
import { ExportAnswerError, ExportApiError, ExportConnectionError } from "./http/errors.ts";
import {
  type Answer,
  error,
  json,
  lines,
  page,
  raw,
  startServer,
  type TestServer,
} from "./http/test-server.fixture.ts";

const running: TestServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

const KEY = "the-key";
const setUp = async (options: {
  answers: Answer[];
  signal?: AbortSignal;
  idleMs?: number;
  attempts?: number;
}) => {
  const { answers, attempts = 4, ...others } = options;
  const server = await startServer(...answers);
  running.push(server);
  const retry = { attempts, firstWaitMs: 2, maxWaitMs: 3_000 };
  return { server, client: createClient({ baseUrl: server.baseUrl, apiKey: KEY, retry, ...others }) };
};

const all = async <T>(records: AsyncIterable<T>): Promise<T[]> => {
  const found: T[] = [];
  for await (const record of records) found.push(record);
  return found;
};
const idsOf = async (records: AsyncIterable<{ readonly _id: string }>): Promise<string[]> =>
  (await all(records)).map(({ _id }) => _id);
const whole = async <T, Last>(records: AsyncGenerator<T, Last>): Promise<{ records: T[]; last: Last }> => {
  const found: T[] = [];
  for (;;) {
    const next = await records.next();
    if (next.done === true) return { records: found, last: next.value };
    found.push(next.value);
  }
};

const WINDOW = { createdSince: "2026-10-01T00:00:00Z" };
const record = (id: string, second: number) => ({
  _id: id,
  date_created: `2026-10-01T00:00:0${second}.000000+00:00`,
});

describe("pages", () => {
  it("are followed by their links, with the key, and reach to the present", async () => {
    const { server, client } = await setUp({ answers: [(...args) => first(...args), page(["c"], null)] });
    const first = page(["a", "b"], `${server.baseUrl}/v2/export/conversations?cursor=2`);
    expect(await idsOf(client.conversations({ ...WINDOW, pageSize: 100 }))).toEqual(["a", "b", "c"]);
    expect(server.asked).toEqual([
      "/api/v2/export/conversations?created_since=2026-10-01T00%3A00%3A00Z&created_to=9999-12-31T00%3A00%3A00Z&page_size=100",
      "/api/v2/export/conversations?cursor=2",
    ]);
    expect(server.headers.map(({ authorization }) => authorization)).toEqual([
      `Bearer ${KEY}`,
      `Bearer ${KEY}`,
    ]);
  });

  it("take the way of the base address when a link says another protocol", async () => {
    const { server, client } = await setUp({ answers: [(...args) => first(...args), page(["b"], null)] });
    const host = new URL(server.baseUrl).host;
    const first = page(["a"], `https://${host}/api/v2/export/messages?cursor=2`);
    expect(await idsOf(client.messages(WINDOW))).toEqual(["a", "b"]);
  });

  it("are not followed to another host", async () => {
    const { client, server } = await setUp({
      answers: [page(["a"], "https://other.example/api/v2?cursor=2")],
    });
    await expect(all(client.conversations(WINDOW))).rejects.toThrow(
      new ExportAnswerError(
        `the link https://other.example leads away from ${new URL(server.baseUrl).host}: it is not followed`,
      ),
    );
  });

  it("keep to the host of the base address when a path begins with //", async () => {
    const asked: URL[] = [];
    const recording: typeof fetch = (address) => {
      asked.push(new URL(address instanceof Request ? address.url : address));
      const next = asked.length === 1 ? "https://export.example//other.example/x?cursor=2" : null;
      return Promise.resolve(Response.json({ data: [], meta: { next_page_uri: next } }));
    };
    const baseUrl = "https://export.example//api";
    const client = createClient({ baseUrl, apiKey: KEY, fetch: recording });
    await all(client.conversations(WINDOW));
    expect(asked.map(({ host, pathname }) => [host, pathname])).toEqual([
      ["export.example", "//api/v2/export/conversations"],
      ["export.example", "//other.example/x"],
    ]);
  });

  it("end with an error when a link repeats itself", async () => {
    const { client } = await setUp({ answers: [page(["a"], "/v2/export/conversations?cursor=2")] });
    await expect(all(client.conversations(WINDOW))).rejects.toThrow("repeats itself");
  });

  it.each<[string, Answer]>([
    ["no JSON", (response) => response.end("<html>")],
    ["no page", json([])],
    ["no meta", json({ data: [] })],
    ["no records", json({ data: {}, meta: { next_page_uri: null } })],
    ["no link", json({ data: [], meta: {} })],
  ])("are refused when they are %s", async (_, answer) => {
    const { client, server } = await setUp({ answers: [answer] });
    await expect(all(client.conversations(WINDOW))).rejects.toBeInstanceOf(ExportAnswerError);
    expect(server.asked).toHaveLength(1);
  });

  it("are asked for again when the connection breaks in them", async () => {
    const half: Answer = (response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write('{"data":[', () => response.destroy());
    };
    const { client, server } = await setUp({ answers: [half, half, page(["a"], null)] });
    expect(await idsOf(client.conversations(WINDOW))).toEqual(["a"]);
    expect(server.asked).toHaveLength(3);
  });
});

describe("errors", () => {
  it("have the type, the details and the id of the request", async () => {
    const { client, server } = await setUp({ answers: [error(400, "bad_request", {}, "page_size: no")] });
    const thrown = await all(client.conversations(WINDOW)).catch((caught: unknown) => caught);
    expect(thrown).toBeInstanceOf(ExportApiError);
    expect(thrown).toMatchObject({
      status: 400,
      type: "bad_request",
      details: "page_size: no",
      requestId: "r-1",
      message: "400: no (page_size: no)",
    });
    expect(server.asked).toHaveLength(1);
  });

  it("of another server have no type", async () => {
    const { client } = await setUp({
      answers: [raw(404, "text/html", "<h1>Not here</h1>")],
    });
    await expect(all(client.endUsers())).rejects.toMatchObject({ status: 404, type: null });
  });

  it.each([408, 429, 500, 502, 503, 504])("of status %s are repeated, a few times", async (status) => {
    const { client, server } = await setUp({
      answers: [error(status, "x"), error(status, "x"), page(["a"], null)],
    });
    expect(await idsOf(client.conversations(WINDOW))).toEqual(["a"]);
    expect(server.asked).toHaveLength(3);
    const { client: other, server: down } = await setUp({ answers: [error(status, "x")] });
    await expect(all(other.conversations(WINDOW))).rejects.toMatchObject({ status });
    expect(down.asked).toHaveLength(4);
  });

  it.each([
    ["seconds", () => "1"],
    ["a date", () => new Date(Date.now() + 2_000).toUTCString()],
  ])("wait as long as Retry-After says in %s", async (_, value) => {
    const { client } = await setUp({
      answers: [error(429, "rate_limit_exceeded", { "retry-after": value() }), page(["a"], null)],
    });
    const started = performance.now();
    expect(await idsOf(client.conversations(WINDOW))).toEqual(["a"]);
    expect(performance.now() - started).toBeGreaterThan(950);
  });

  it("do not wait longer than is allowed", async () => {
    const { client, server } = await setUp({
      answers: [error(429, "rate_limit_exceeded", { "retry-after": "86400" })],
    });
    await expect(all(client.conversations(WINDOW))).rejects.toMatchObject({ retryAfterMs: 86_400_000 });
    expect(server.asked).toHaveLength(1);
  });

  it("name a redirect, which is not followed", async () => {
    const redirect = { location: "https://other.example/api" };
    const { client, server } = await setUp({ answers: [raw(308, "text/html", "", redirect)] });
    await expect(all(client.conversations(WINDOW))).rejects.toThrow("redirects to https://other.example/api");
    expect(server.asked).toHaveLength(1);
  });

  it("say that the service was not reached", async () => {
    const { client, server } = await setUp({ answers: [page([], null)] });
    running.splice(running.indexOf(server), 1);
    await server.close();
    await expect(all(client.conversations(WINDOW))).rejects.toMatchObject({
      name: "ExportConnectionError",
      isUnsent: true,
    });
  });

  it("say that nothing came for too long", async () => {
    const { client, server } = await setUp({ answers: [() => undefined], idleMs: 500, attempts: 2 });
    await expect(all(client.conversations(WINDOW))).rejects.toThrow(
      "nothing came from the service for 500 ms",
    );
    expect(server.asked).toHaveLength(2);
  });

  it("are the reason of the signal when it aborts, while waiting and while reading", async () => {
    for (const answer of [error(503, "x", { "retry-after": "2" }), () => undefined]) {
      const controller = new AbortController();
      const { client, server } = await setUp({ answers: [answer], signal: controller.signal });
      const reading = all(client.conversations(WINDOW));
      await expect.poll(() => server.asked.length).toBe(1);
      controller.abort(new Error("enough"));
      await expect(reading).rejects.toThrow("enough");
      expect(server.asked).toHaveLength(1);
    }
  });
});

describe("lines", () => {
  const trailer = (count: number) => ({ count, watermark: null });

  it("come with their trailer", async () => {
    const records = [record("a", 1), record("b", 2)];
    const { client, server } = await setUp({ answers: [lines(records, trailer(2))] });
    expect(await whole(client.lines("conversations", WINDOW))).toEqual({ records, last: trailer(2) });
    expect(server.headers[0]?.accept).toBe("application/x-ndjson");
  });

  it("are read on from the last whole line when they break, each once", async () => {
    const { client, server } = await setUp({
      answers: [
        lines([record("a", 1), record("b", 2), record("c", 2)], "broken"),
        error(503, "internal_server_error"),
        lines([record("b", 2), record("c", 2)], "broken"),
        lines([record("b", 2), record("c", 2), record("d", 2)], "broken"),
        lines([record("b", 2), record("c", 2), record("d", 2), record("e", 3)], trailer(4)),
      ],
    });
    expect(await idsOf(client.lines("messages", WINDOW))).toEqual(["a", "b", "c", "d", "e"]);
    expect(server.asked.map((path) => new URL(path, "http://x").searchParams.get("created_since"))).toEqual([
      "2026-10-01T00:00:00Z",
      ...Array.from({ length: 4 }, () => "2026-10-01T00:00:02.000000+00:00"),
    ]);
  });

  it("that are cut anywhere come whole", async () => {
    const records = [record("ä", 1), record("🙂", 2), record("c", 3)];
    const bytes = Buffer.from(
      [...records, { trailer: trailer(3) }].map((one) => `${JSON.stringify(one)}\n`).join(""),
    );
    const headers = { "content-type": "application/x-ndjson" };
    const fetchCut = (): Promise<Response> =>
      Promise.resolve(
        new Response(ReadableStream.from([...bytes].map((byte) => Uint8Array.of(byte))), { headers }),
      );
    const client = createClient({ baseUrl: "http://x", apiKey: KEY, fetch: fetchCut });
    expect(await all(client.lines("conversations", WINDOW))).toEqual(records);
  });

  it("are an error when they end without their trailer again and again", async () => {
    const { client, server } = await setUp({ answers: [lines([record("a", 1)], "broken")] });
    await expect(all(client.lines("conversations", WINDOW))).rejects.toBeInstanceOf(ExportConnectionError);
    expect(server.asked).toHaveLength(4);
  });

  it.each<[string, Answer, string]>([
    ["another count", lines([record("a", 1)], trailer(2)), "has 1 lines, its trailer says 2"],
    ["lines without an id", lines([{ date_created: "x" }], trailer(1)), "no _id or date_created"],
    [
      "lines that are not JSON",
      (response) => response.end('{"_id":\n{"trailer":{"count":1,"watermark":null}}\n'),
      "not JSON",
    ],
    [
      "lines behind the trailer",
      (response) =>
        response.write('{"trailer":{"count":0,"watermark":null}}\n', () =>
          setTimeout(() => response.end('{"_id":"a"}\n'), 20),
        ),
      "goes on behind its trailer",
    ],
  ])("with %s are refused", async (_, answer, said) => {
    const { client, server } = await setUp({ answers: [answer] });
    await expect(all(client.lines("conversations", WINDOW))).rejects.toThrow(said);
    expect(server.asked).toHaveLength(1);
  });

  it("end their connection when the reader stops", async () => {
    let isClosed = false;
    const endless: Answer = (response) => {
      response.once("close", () => (isClosed = true));
      response.write(`${JSON.stringify(record("a", 1))}\n`);
    };
    const { client } = await setUp({ answers: [endless] });
    for await (const { _id } of client.lines("conversations", WINDOW)) {
      expect(_id).toBe("a");
      break;
    }
    await expect.poll(() => isClosed).toBe(true);
  });
});

describe("changes", () => {
  const deletion = { _id: "b", deleted: true, deleted_at: "2026-10-01T00:00:00.000000+00:00" };
  const changesPage = (data: object[], next: string, end: boolean): Answer =>
    json({ data, meta: { next_cursor: next, end_of_stream: end } }, { "x-export-watermark": "W" });

  it("come in portions with the cursor to store, up to the end", async () => {
    const { client, server } = await setUp({
      answers: [changesPage([record("a", 1), deletion], "c1", false), changesPage([], "c2", true)],
    });
    expect(await all(client.changes("conversations", { cursor: "c0", pageSize: 2 }))).toEqual([
      { records: [record("a", 1)], deletions: [deletion], cursor: "c1", endOfStream: false, watermark: "W" },
      { records: [], deletions: [], cursor: "c2", endOfStream: true, watermark: "W" },
    ]);
    expect(server.asked).toEqual([
      "/api/v2/export/changes/conversations?cursor=c0&page_size=2",
      "/api/v2/export/changes/conversations?cursor=c1&page_size=2",
    ]);
  });

  it("come as lines with the cursor in their trailer", async () => {
    const trailer = { count: 2, watermark: null, next_cursor: "c1", end_of_stream: true };
    const { client, server } = await setUp({ answers: [lines([record("a", 1), deletion], trailer)] });
    const since = new Date("2026-10-01T00:00:00Z");
    expect(await whole(client.changeLines("messages", { storedSince: since }))).toEqual({
      records: [record("a", 1), deletion],
      last: trailer,
    });
    expect(server.asked).toEqual([
      "/api/v2/export/changes/messages?stored_since=2026-10-01T00%3A00%3A00.000Z",
    ]);
  });

  it("without a cursor are refused", async () => {
    const { client } = await setUp({ answers: [json({ data: [], meta: { end_of_stream: true } })] });
    await expect(all(client.changes("end_users"))).rejects.toThrow("next_cursor");
  });
});

describe("requests that write", () => {
  const accepted = json({ email: "a@b.example" }, { location: "/api/v2/data-subject-request/r-17" });
  const trigger = {
    campaign_key: "welcome",
    language: "en",
    recipient: { meta_fields: { phone_number: "+15551234567", order: 17 } },
  };

  it("of a data subject are repeated only when they had no effect", async () => {
    const { client, server } = await setUp({ answers: [error(429, "rate_limit_exceeded"), accepted] });
    expect(await client.requestErasure({ email: "a@b.example" })).toBe("r-17");
    expect(server.asked).toHaveLength(2);
    for (const [answer, said] of [
      [error(503, "x"), "503: no"],
      [(response) => response.destroy(), "the connection to"],
    ] satisfies [Answer, string][]) {
      const { client: other, server: broken } = await setUp({ answers: [answer, accepted] });
      await expect(other.requestErasure({ email: "a@b.example" })).rejects.toThrow(said);
      expect(broken.asked).toHaveLength(1);
    }
  });

  it("of SMS are repeated with one key", async () => {
    const { client, server } = await setUp({
      answers: [error(503, "x"), (response) => response.destroy(), json({ id: "e-1" })],
    });
    expect(await client.triggerSms(trigger)).toEqual({ id: "e-1" });
    const keys = server.headers.map((headers) => headers["idempotency-key"]);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(3);
  });
});

describe("keys", () => {
  it.each([
    "a\nb",
    "a b",
    "",
    "schl\u00fcssel",
  ])("that cannot be sent are refused without being named: %j", (apiKey) => {
    const make = () => createClient({ baseUrl: "https://export.example/api", apiKey });
    expect(make).toThrow(
      new TypeError("apiKey: must be one line of visible ASCII characters without spaces"),
    );
  });
});

describe("answers of a proxy with status 200", () => {
  const html = raw(200, "text/html", "<html>\n</html>\n");

  it("are refused at once where lines were asked for", async () => {
    const { client, server } = await setUp({ answers: [html] });
    await expect(all(client.lines("conversations", WINDOW))).rejects.toBeInstanceOf(ExportAnswerError);
    await expect(all(client.changeLines("end_users"))).rejects.toBeInstanceOf(ExportAnswerError);
    expect(server.asked).toHaveLength(2);
  });

  it("end their connection, and leave no timer, before the error arrives", async () => {
    vi.useFakeTimers();
    try {
      let isCancelled = false;
      const body = new ReadableStream({ cancel: () => void (isCancelled = true) });
      const answer = new Response(body, { headers: { "content-type": "text/html" } });
      const client = createClient({ baseUrl: "http://x", apiKey: KEY, fetch: () => Promise.resolve(answer) });
      await expect(all(client.lines("conversations", WINDOW))).rejects.toThrow("is text/html");
      expect(isCancelled).toBe(true);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    { count: 0, watermark: null },
    { count: 0, watermark: null, next_cursor: "c", end_of_stream: false },
  ])("and changes whose trailer is %j", async (trailer) => {
    const { client } = await setUp({ answers: [lines([], trailer)] });
    await expect(all(client.changeLines("messages"))).rejects.toBeInstanceOf(ExportAnswerError);
  });
});

it.each([
  "1.5",
  "-1",
  "soon",
  "Nov 5",
  "2026-11-28T00:00:00Z",
  "Sat, 28 Nov 2126 10:00:00",
  "Sat, 28 Nov 2126 10:00:00 +0200",
  "Sun Nov  6 08:49:37 2126",
  "Sat, 31 Feb 2126 10:00:00 GMT",
])("Retry-After: %s is none", async (value) => {
  const { client } = await setUp({
    answers: [error(503, "service_unavailable", { "retry-after": value })],
    attempts: 1,
  });
  await expect(all(client.conversations(WINDOW))).rejects.toMatchObject({ retryAfterMs: null });
});
