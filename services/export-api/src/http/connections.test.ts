import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { createListReader, createTestApp, KEY, listen, type TestApp } from "./app.fixture.ts";

const IDLE_MS = 500;

let test: TestApp | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const start = (overrides: Parameters<typeof createTestApp>[1]): Promise<number> => {
  test = createTestApp(createListReader({}).reader, overrides);
  return listen(test.app);
};

const open = async (port: number, text: string): Promise<Socket> => {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(text);
  return socket;
};

const answerOf = async (socket: Socket): Promise<string> => {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
};

const openConnections = (): Promise<number> =>
  new Promise((resolve, reject) => {
    test?.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });

const SCRIPT = "GET /api/reference/scalar.js HTTP/1.1\r\nHost: a\r\n\r\n";
/** Together larger than all buffers of the system. */
const SCRIPTS = SCRIPT.repeat(4);

it("closes connections that do not take their answers", async () => {
  const port = await start({ idleMs: IDLE_MS });
  for (let n = 0; n < 20; n += 1) (await open(port, SCRIPTS)).pause();
  expect(await openConnections()).toBe(20);
  await expect.poll(() => openConnections()).toBe(0);
});

it("closes one that takes its answer drop by drop", async () => {
  const port = await start({ idleMs: IDLE_MS });
  const socket = await open(port, SCRIPTS);
  socket.pause();
  const drops = setInterval(() => socket.read(1), 20);
  await expect.poll(() => openConnections()).toBe(0);
  clearInterval(drops);
});

it("opens no more connections than allowed, and says so", async () => {
  const port = await start({ maxConnections: 2 });
  const [first] = [await open(port, ""), await open(port, "")];
  expect(await answerOf(await open(port, SCRIPT))).toBe("");
  expect(await test?.metricsText()).toMatch(/^conversation_export_api_connections_refused_total\{.*\} 1$/m);
  first.destroy();
  await expect.poll(() => openConnections()).toBe(1);
  const request = "GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  expect(await answerOf(await open(port, request))).toMatch(/^HTTP\/1\.1 404 /);
});

it("closes connections of callers without a key while more than half of those allowed are open", async () => {
  const port = await start({ maxConnections: 4 });
  const nobody = await open(port, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
  const [kept] = (await once(nobody, "data")) as [Buffer];
  expect(kept.toString("latin1")).toMatch(/^connection: keep-alive\r$/im);
  await open(port, "");
  const withKey = `GET /api/v2/export/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\n\r\n`;
  const client = await open(port, withKey);
  const [answer] = (await once(client, "data")) as [Buffer];
  expect(answer.toString("latin1")).toMatch(/^HTTP\/1\.1 400 [^]*^connection: keep-alive\r$/im);
  for (const request of ["/nowhere", "/api/v2/export/messages", "/api/openapi.json", "/%zz"]) {
    const answer = await answerOf(await open(port, `GET ${request} HTTP/1.1\r\nHost: a\r\n\r\n`));
    expect(answer, request).toMatch(/^connection: close\r$/im);
  }
  client.write(withKey);
  const [again] = (await once(client, "data")) as [Buffer];
  expect(again.toString("latin1")).toMatch(/^HTTP\/1\.1 400 [^]*^connection: keep-alive\r$/im);
  nobody.write("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
  expect(await answerOf(nobody)).toMatch(/^connection: close\r$/im);
});

it("serves no page of the reference when it is off, but the document", async () => {
  test = createTestApp(createListReader({}).reader, { reference: false });
  const statusOf = async (url: string): Promise<number | undefined> =>
    (await test?.app.inject({ url, headers: { host: "a" } }))?.statusCode;
  expect(await statusOf("/api/reference")).toBe(404);
  expect(await statusOf("/api/reference/scalar.js")).toBe(404);
  expect(await statusOf("/api/openapi.json")).toBe(200);
});

it("answers a request with two hosts with 400", async () => {
  const port = await start({});
  const request = "GET /api/openapi.json HTTP/1.1\r\nHost: a\r\nhost: b\r\nConnection: close\r\n\r\n";
  const answer = await answerOf(await open(port, request));
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain("Host: the header is repeated");
});
