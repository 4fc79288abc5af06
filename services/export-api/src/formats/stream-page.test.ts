import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import net from "node:net";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { zstdDecompressSync } from "node:zlib";
import { createLogger, ServiceError } from "@conversation-export/runtime";
import type { Page, PageQuery } from "@conversation-export/warehouse";
import { describe, expect, it, onTestFinished } from "vitest";
import { AUTHORIZED, createListReader, createTestApp, KEY, pageOf } from "../http/app.fixture.ts";
import { createListener } from "../http/listener.ts";
import { streamPage } from "./stream-page.ts";
import { countZstdFrames } from "./zstd-frames.fixture.ts";

const PATH = "/api/v2/export/conversations?created_since=2024-03-01T00:00:00Z";
const MEGABYTE = 1_000_000;

const startApp = async (
  pageFor: (query: PageQuery) => Promise<Page>,
  options: { idleMs?: number; drainMs?: number } = {},
) => {
  const { idleMs = 60_000, drainMs = 60_000 } = options;
  const queries: PageQuery[] = [];
  const reader = {
    ...createListReader({}).reader,
    conversationsByCreation: (query: PageQuery) => {
      queries.push(query);
      return pageFor(query);
    },
  };
  const test = createTestApp(reader, { idleMs });
  const log = createLogger({ service: "export-api", level: "silent" });
  const listener = createListener({ app: test.app, host: "127.0.0.1", port: 0, drainMs, log });
  const { port } = await listener.start();
  onTestFinished(async () => {
    test.app.server.closeAllConnections();
    await test.app.close();
  });
  return { ...test, listener, port, queries };
};

const createSource = (count: number, chunk = Buffer.alloc(65_536, "a")) => {
  const source = { taken: 0 };
  const records = new Readable({
    highWaterMark: 65_536,
    read() {
      source.taken += 1;
      this.push(source.taken <= count ? chunk : null);
    },
  });
  return Object.assign(source, { records });
};

const request = async (
  port: number,
  agent?: http.Agent,
  headers?: Record<string, string>,
): Promise<IncomingMessage> => {
  const call = http.get({
    host: "127.0.0.1",
    port,
    path: PATH,
    headers: { ...AUTHORIZED, ...headers },
    ...(agent && { agent }),
  });
  const [response] = (await once(call, "response")) as [IncomingMessage];
  // The response reports a later error as well.
  call.on("error", () => {});
  return response;
};

const readAll = async (response: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

const exchange = (port: number, text: string): Promise<{ answer: string; reset: boolean }> =>
  new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text));
    let answer = "";
    let reset = false;
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      answer += chunk;
    });
    socket.on("error", () => {
      reset = true;
    });
    socket.on("close", () => resolve({ answer, reset }));
  });

const connectionError = (port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code));
  });

const target = (lines: readonly string[]): string =>
  [`GET ${PATH} HTTP/1.1`, `authorization: Bearer ${KEY}`, ...lines, "", ""].join("\r\n");

describe("a page on a real socket", () => {
  it("arrives whole, and the connection serves the next one", async () => {
    const { port } = await startApp(() => Promise.resolve(pageOf(createSource(400).records)));
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    let port1: number | undefined;
    for (let page = 0; page < 3; page++) {
      const response = await request(port, agent);
      port1 ??= response.socket.localPort;
      expect(response.socket.localPort).toBe(port1);
      expect(response.headers["transfer-encoding"]).toBe("chunked");
      const body = await readAll(response);
      const tail = '],"meta":{"next_page_uri":null}}';
      expect(body.length).toBe(400 * 65_536 + '{"data":['.length + tail.length);
      expect(body.subarray(0, 12).toString()).toBe('{"data":[aaa');
      expect(body.subarray(-tail.length).toString()).toBe(tail);
    }
  });

  it.each([
    0, 1, 1_000, 65_536, 1_000_000,
  ])("is one zstd frame, for decoders that read no further (%i bytes)", async (length) => {
    const { port } = await startApp(() =>
      Promise.resolve(pageOf(createSource(3, Buffer.alloc(length, "a")).records)),
    );
    const response = await request(port, undefined, { "accept-encoding": "zstd" });
    const body = await readAll(response);
    expect(countZstdFrames(body)).toBe(1);
    expect(zstdDecompressSync(body).toString()).toMatch(/^{"data":\[a*\],"meta":{"next_page_uri":null}}$/);
  });

  it("is read no faster than the client takes it", async () => {
    const source = createSource(10_000);
    const { port } = await startApp(() => Promise.resolve(pageOf(source.records)));
    const response = await request(port);
    response.pause();
    let before = -1;
    while (before !== source.taken) {
      before = source.taken;
      await sleep(200);
    }
    // Buffers of two sockets, response and stream; the page has 655 MB.
    expect(source.taken * 65_536).toBeLessThan(16 * MEGABYTE);
    let read = 0;
    response.on("data", (chunk: Buffer) => {
      read += chunk.length;
    });
    response.resume();
    await expect.poll(() => read).toBeGreaterThan(50 * MEGABYTE);
    expect(source.taken * 65_536 - read).toBeLessThan(16 * MEGABYTE);
    response.destroy();
    await expect.poll(() => source.records.destroyed).toBe(true);
  });

  it("cancels the query when the client goes away, and says so", async () => {
    const source = createSource(10_000);
    const { port, queries, logLines, metricsText } = await startApp(() =>
      Promise.resolve(pageOf(source.records)),
    );
    const response = await request(port);
    await once(response, "data");
    response.destroy();
    await expect.poll(() => source.records.destroyed).toBe(true);
    expect(queries[0]?.signal?.aborted).toBe(true);
    await expect
      .poll(() => logLines.find((line) => line["msg"] === "request"))
      .toMatchObject({ pageEnd: "client_gone" });
    expect(logLines.some((line) => line["level"] === "error")).toBe(false);
    expect(await metricsText()).toMatch(
      /conversation_export_api_broken_pages_total\{reason="client_gone",.*\} 1/,
    );
  });

  it("cancels a query that has not answered yet when the client goes away", async () => {
    let asked: AbortSignal | undefined;
    const { port, logLines } = await startApp(
      (query) =>
        new Promise((_resolve, reject) => {
          asked = query.signal;
          query.signal?.addEventListener("abort", () => reject(new ServiceError("aborted", "aborted")));
        }),
    );
    const call = http.get({ host: "127.0.0.1", port, path: PATH, headers: AUTHORIZED });
    call.on("error", () => {});
    await expect.poll(() => asked).toBeDefined();
    call.destroy();
    await expect.poll(() => asked?.aborted).toBe(true);
    await expect
      .poll(() => logLines.find((line) => line["msg"] === "request"))
      .toMatchObject({ status: 499 });
    expect(logLines.some((line) => line["level"] === "error")).toBe(false);
  });

  it.each(["1.1", "1.0"])("never ends cleanly when the query breaks midway (HTTP/%s)", async (version) => {
    const failure = new ServiceError("warehouse_unavailable", "broke midway", { retryable: true });
    const { port, logLines, metricsText } = await startApp(() => {
      const records = new Readable({ read() {} });
      records.push("a".repeat(100_000));
      setTimeout(() => records.destroy(failure), 50);
      return Promise.resolve(pageOf(records));
    });
    const text = target(["host: x"]).replace("HTTP/1.1", `HTTP/${version}`);
    const { answer, reset } = await exchange(port, text);
    expect(answer).toMatch(/^HTTP\/1\.1 200/);
    expect(answer).toContain("aaaa");
    expect(answer).not.toContain("next_page_uri");
    expect(answer).not.toContain("\r\n0\r\n\r\n");
    expect(reset).toBe(true);
    const line = logLines.find((line) => line["msg"] === "page broken off");
    expect(line).toMatchObject({ level: "error", reason: "warehouse_failed" });
    expect(line?.["errorId"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(await metricsText()).toMatch(
      /conversation_export_api_broken_pages_total\{reason="warehouse_failed",.*\} 1/,
    );
  });

  it.each(["gzip", "br", "zstd"])("never ends cleanly in %s when the query breaks midway", async (coding) => {
    const failure = new ServiceError("warehouse_unavailable", "broke midway", { retryable: true });
    const records = new Readable({
      read() {
        this.push(randomBytes(65_536));
      },
    });
    const { port, metricsText } = await startApp(() => Promise.resolve(pageOf(records)));
    const response = await request(port, undefined, { "accept-encoding": coding });
    expect(response.headers["content-encoding"]).toBe(coding);
    records.destroy(failure);
    await expect(readAll(response)).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(await metricsText()).toMatch(
      /conversation_export_api_broken_pages_total\{reason="warehouse_failed",.*\} 1/,
    );
  });

  it("never ends cleanly when the records stop without an end", async () => {
    const { port } = await startApp(() => {
      const records = new Readable({ read() {} });
      records.push("abc");
      setTimeout(() => records.destroy(), 20);
      return Promise.resolve(pageOf(records));
    });
    const { answer, reset } = await exchange(port, target(["host: x"]));
    expect(answer).toContain("abc");
    expect(answer).not.toContain("next_page_uri");
    expect(reset).toBe(true);
  });
});

describe("a page without progress", () => {
  it("is cut when the client does not read", async () => {
    const source = createSource(10_000);
    const { port, metricsText } = await startApp(() => Promise.resolve(pageOf(source.records)), {
      idleMs: 300,
    });
    const response = await request(port);
    response.on("error", () => {});
    response.pause();
    await expect.poll(() => source.records.destroyed).toBe(true);
    expect(await metricsText()).toMatch(
      /conversation_export_api_broken_pages_total\{reason="client_stalled",.*\} 1/,
    );
  });

  it("goes on while the client reads slowly but steadily", async () => {
    const source = createSource(200);
    const { port } = await startApp(() => Promise.resolve(pageOf(source.records)), { idleMs: 300 });
    const response = await request(port);
    let read = 0;
    for await (const chunk of response) {
      read += (chunk as Buffer).length;
      await sleep(8);
    }
    expect(read).toBeGreaterThan(200 * 65_536);
  });

  it("is cut when the warehouse stops midway, and answered with 503 when it never begins", async () => {
    const begun = new Readable({ read() {} });
    begun.push("abc");
    const never = new Readable({ read() {} });
    const pages = [pageOf(begun), pageOf(never)];
    const { port, metricsText } = await startApp(() => Promise.resolve(pages.shift() ?? pageOf(never)), {
      idleMs: 200,
    });
    const { answer, reset } = await exchange(port, target(["host: x"]));
    expect([answer.includes("abc"), answer.includes("meta"), reset]).toEqual([true, false, true]);
    expect(await metricsText()).toMatch(
      /conversation_export_api_broken_pages_total\{reason="warehouse_stalled",.*\} 1/,
    );
    const response = await request(port);
    expect(response.statusCode).toBe(503);
    expect((await readAll(response)).toString()).toContain("error_id");
    expect([begun.destroyed, never.destroyed]).toEqual([true, true]);
  });
});

describe("stopping", () => {
  it("finishes the running page, then closes its kept connection, and accepts nothing new", async () => {
    const records = new Readable({ read() {} });
    records.push("abc");
    const { port, listener } = await startApp(() => Promise.resolve(pageOf(records)));
    expect(listener.ready()).toBe(true);
    const agent = new http.Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const response = await request(port, agent);
    await once(response, "readable");
    const { socket } = response;
    const stopped = listener.stop();
    expect(listener.ready()).toBe("draining");
    await expect.poll(() => connectionError(port)).toBe("ECONNREFUSED");
    records.push(null);
    expect((await readAll(response)).toString()).toBe('{"data":[abc],"meta":{"next_page_uri":null}}');
    await stopped;
    await expect.poll(() => socket.destroyed || socket.readableEnded).toBe(true);
  });

  it("answers every request of clients that never pause", async () => {
    const { port, listener } = await startApp(() => Promise.resolve(pageOf(Readable.from(["abc"]))));
    const askUntilClosed = async (pauseMs: number): Promise<number> => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => agent.destroy());
      for (let answers = 1; ; answers += 1) {
        const response = await request(port, agent);
        expect([response.statusCode, (await readAll(response)).toString()]).toEqual([
          200,
          '{"data":[abc],"meta":{"next_page_uri":null}}',
        ]);
        if (response.headers.connection === "close") return answers;
        await sleep(pauseMs);
      }
    };
    // Some pause when the service stops.
    const asking = [0, 0, 1, 5, 50, 300].map(askUntilClosed);
    const idle = new http.Agent({ keepAlive: true });
    onTestFinished(() => idle.destroy());
    await readAll(await request(port, idle));
    await sleep(100);
    const stopped = listener.stop();
    await expect.poll(() => connectionError(port)).toBe("ECONNREFUSED");
    expect(await readAll(await request(port, idle))).toHaveLength(44);
    for (const answers of await Promise.all(asking)) expect(answers).toBeGreaterThan(1);
    await stopped;
  });

  it("counts the two seconds from the last of several answers", async () => {
    const pages = [new Readable({ read() {} }), new Readable({ read() {} })];
    const waiting = [...pages];
    const { port, listener } = await startApp(() =>
      Promise.resolve(pageOf(waiting.shift() ?? Readable.from(["c"]))),
    );
    const socket = net.connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    let answers = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (answers += chunk));
    const lines = ["host: x"];
    socket.write(target(lines) + target(lines));
    await expect.poll(() => waiting.length).toBe(0);
    const stopped = listener.stop();
    pages[0]?.push("a");
    pages[0]?.push(null);
    await sleep(1_500);
    pages[1]?.push("b");
    pages[1]?.push(null);
    await expect.poll(() => answers).toContain("\r\nb\r\n");
    // Over two seconds after the first answer.
    await sleep(1_000);
    socket.write(target(lines));
    await expect.poll(() => answers).toContain("\r\nc\r\n");
    expect(answers.toLowerCase().split("connection: close")).toHaveLength(2);
    await stopped;
  });

  it("waits for a request of which a part has come, and ends connections also after what is no target", async () => {
    const { port, listener } = await startApp(() => Promise.resolve(pageOf(Readable.from(["abc"]))));
    const [begin, rest] = [target(["host: x"]).slice(0, 20), target(["host: x"]).slice(20)];
    const parts = net.connect(port, "127.0.0.1");
    const wrong = net.connect(port, "127.0.0.1");
    const ended = [parts, wrong].map(async (socket) => {
      let answer = "";
      socket.setEncoding("latin1").on("data", (chunk: string) => (answer += chunk));
      await once(socket, "close");
      return answer;
    });
    await Promise.all([once(parts, "connect"), once(wrong, "connect")]);
    await readAll(await request(port));
    const stopped = listener.stop();
    await sleep(1_000);
    parts.write(begin);
    wrong.write("GET /%zz HTTP/1.1\r\nhost: x\r\n\r\n");
    await sleep(1_500);
    parts.write(rest);
    const [answer, refusal] = await Promise.all(ended);
    expect(answer).toContain("\r\nabc\r\n");
    expect(refusal).toMatch(/^HTTP\/1\.1 400 [^]*^connection: close\r$/im);
    await stopped;
  });

  it("cuts a page that outlives the deadline", async () => {
    const records = new Readable({ read() {} });
    records.push("abc");
    const { port, listener } = await startApp(() => Promise.resolve(pageOf(records)), { drainMs: 100 });
    const answered = exchange(port, target(["host: x"]));
    await expect.poll(() => records.listenerCount("data")).toBe(1);
    await listener.stop();
    await expect.poll(() => records.destroyed).toBe(true);
    expect((await answered).answer).not.toContain("meta");
  });
});

describe("a client that takes a byte now and then", () => {
  it("is cut, though it never stands still", async () => {
    const records = new Readable({ highWaterMark: 1_024, read: () => {} });
    // Takes nothing, though the socket counts bytes.
    const socket = { bytesWritten: 0 };
    const response = new Writable({ highWaterMark: 16, write: () => {} });
    const trickle = setInterval(() => {
      socket.bytesWritten += 1;
    }, 5);
    const answered = streamPage({
      response: Object.assign(response, { socket, setTimeout: () => {} }) as never,
      records,
      head: "a head that fills the buffer",
      tail: () => "",
      idleMs: 50,
      lost: new AbortController().signal,
      sweep: () => {},
      begin: () => {},
    });
    records.push("x".repeat(1_000));
    await expect(answered).resolves.toMatchObject({ end: "client_stalled" });
    clearInterval(trickle);
    expect(records.destroyed).toBe(true);
  });
});

describe("what is not a request", () => {
  const empty = () => Promise.resolve(pageOf(Readable.from([])));
  const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));

  it.each([
    ["garbage", "nonsense\r\n\r\n", 400],
    ["a header too large", `GET /x HTTP/1.1\r\nhost: x\r\na: ${"a".repeat(20_000)}\r\n\r\n`, 431],
    ["a target too long", `GET /${"a".repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 431],
    ["no Host", "GET /api/v2/export/messages HTTP/1.1\r\nconnection: close\r\n\r\n", 400],
    [
      "another method",
      "PROPFIND /api/v2/export/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
      405,
    ],
    ["an expectation", "GET /x HTTP/1.1\r\nhost: x\r\nexpect: wonders\r\nconnection: close\r\n\r\n", 404],
  ])("%s is answered in the body of the specification", async (_name, text, status) => {
    const { port } = await startApp(empty);
    const { answer } = await exchange(port, text);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer.toLowerCase()).toContain("content-type: application/json\r\n");
    expect(answer.toLowerCase()).toContain("x-request-id: ");
    expect(bodyOf(answer)).toMatchObject({
      errors: [{ type: expect.any(String), details: expect.toBeOneOf([null, expect.any(String)]) }],
    });
  });

  it.each([
    "nonsense\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n",
  ])("%j behind a running page is never answered inside of it", async (noise) => {
    const records = new Readable({ read() {} });
    records.push("abc");
    const { port } = await startApp(() => Promise.resolve(pageOf(records)));
    const socket = net.connect(port, "127.0.0.1", () => socket.write(target(["host: x"])));
    let answer = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      if (!answer.includes("abc") && (answer + chunk).includes("abc")) socket.write(noise);
      answer += chunk;
    });
    socket.on("error", () => {});
    await once(socket, "close");
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).not.toContain("errors");
    await expect.poll(() => records.destroyed).toBe(true);
  });

  it("an absolute target is served", async () => {
    const { port } = await startApp(empty);
    const text = target(["host: x", "connection: close"]).replace("GET /", "GET http://x/");
    expect((await exchange(port, text)).answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});
