import { once } from "node:events";
import { createRequire } from "node:module";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createLogger, ServiceError } from "@conversation-export/runtime";
import kafkajs, { type Admin, type KafkaConfig } from "kafkajs";
import { afterEach, expect, it } from "vitest";
import { loginError, mayPass } from "./errors.ts";
import { patchOnce } from "./internals.ts";
import { patchKafkajs } from "./patches.ts";
import { createTokenSource } from "../login/token-source.ts";
import { leaveSilentBrokers } from "./silent-brokers.ts";
import { tokenMechanism } from "./token-login.ts";

patchOnce("leaveSilentBrokers", () => leaveSilentBrokers({ lookMs: 50, answerMs: 150 }));
patchKafkajs();

const METADATA = 3;
const SASL_HANDSHAKE = 17;
const API_VERSIONS = 18;
const SASL_AUTHENTICATE = 36;

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const int32 = (value: number): Buffer => Buffer.from([0, 0, value >> 8, value & 0xff]);
/** By API key; others stay unanswered. */
const ANSWERS: Readonly<Record<number, Buffer>> = {
  // No error, APIs from version 0 to 1, no throttling.
  [API_VERSIONS]: Buffer.concat([
    int16(0),
    int32(4),
    ...[METADATA, API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE].flatMap((key) => [
      int16(key),
      int16(0),
      int16(1),
    ]),
    int32(0),
  ]),
  [SASL_HANDSHAKE]: Buffer.concat([int16(0), int32(1), int16(5), Buffer.from("PLAIN")]),
};

const answerTo = (id: Buffer, apiKey: number): Buffer => {
  const answer = ANSWERS[apiKey] ?? Buffer.alloc(0);
  return Buffer.concat([int32(4 + answer.length), id, answer]);
};

/** `asked`: keys of requests. */
type Broker = {
  readonly server: Server;
  readonly address: string;
  readonly sockets: Socket[];
  readonly asked: number[];
};
const brokers: Broker[] = [];
afterEach(() => {
  for (const { server, sockets } of brokers.splice(0)) {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
});

const startBroker = async (answered: readonly number[]): Promise<Broker> => {
  const sockets: Socket[] = [];
  const asked: number[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (request) => {
      const apiKey = request.readInt16BE(4);
      asked.push(apiKey);
      if (answered.includes(apiKey)) socket.write(answerTo(request.subarray(8, 12), apiKey));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const broker = { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}`, sockets, asked };
  brokers.push(broker);
  return broker;
};

/** kafkajs' types leave these out. */
type Connection = {
  readonly socket: Socket;
  connect(): Promise<unknown>;
  disconnect(): Promise<unknown>;
  send(request: unknown): Promise<unknown>;
  sendAuthRequest(of: { readonly request: { encode(): Buffer } }): Promise<unknown>;
  isConnected(): boolean;
};
const require = createRequire(import.meta.url);
const part = (path: string): unknown => require(`kafkajs/src/${path}`) as unknown;

const quiet = { namespace: () => quiet, debug: () => undefined, error: () => undefined };

const connectionOptions = (
  { server }: Broker,
  times: { readonly request: number; readonly connection: number },
): object => {
  const { port } = server.address() as AddressInfo;
  const createSocketFactory = part("network/socketFactory.js") as () => unknown;
  return {
    host: "127.0.0.1",
    port,
    logger: quiet,
    socketFactory: createSocketFactory(),
    clientId: "test",
    connectionTimeout: times.connection,
    requestTimeout: times.request,
  };
};

const createConnection = (broker: Broker): Connection => {
  const Made = part("network/connection.js") as new (options: object) => Connection;
  return new Made(connectionOptions(broker, { request: 60_000, connection: 10_000 }));
};

const versionsRequest = (): unknown => {
  const { requests } = part("protocol/requests/index.js") as {
    requests: { ApiVersions: { protocol(of: { version: number }): () => unknown } };
  };
  return requests.ApiVersions.protocol({ version: 0 })();
};

type Options = {
  readonly requestTimeout: number;
  readonly connectionTimeout?: number;
  readonly sasl?: KafkaConfig["sasl"];
};
const PASSWORD = { mechanism: "plain", username: "u", password: "p" } as const;

/** Resolves to the failure. */
const using = async (
  servers: readonly Broker[],
  { requestTimeout, connectionTimeout = 10_000, sasl }: Options,
  work: (admin: Admin) => Promise<unknown>,
): Promise<unknown> => {
  const admin = new kafkajs.Kafka({
    brokers: servers.map(({ address }) => address),
    retry: { retries: 20, initialRetryTime: 50, maxRetryTime: 50 },
    logLevel: kafkajs.logLevel.NOTHING,
    // A first request may take as long.
    connectionTimeout,
    requestTimeout,
    ...(sasl !== undefined && { sasl }),
  }).admin();
  try {
    return await work(admin).then(
      () => undefined,
      (error: unknown) => error,
    );
  } finally {
    await admin.disconnect();
  }
};
const connect = (admin: Admin): Promise<void> => admin.connect();

it("leaves a broker that answers nothing, and asks another", async () => {
  const hanging = [await startBroker([]), await startBroker([])];
  expect(String(await using(hanging, { requestTimeout: 60_000 }, connect))).toContain("is silent");
  for (const { sockets } of hanging) expect(sockets.length).toBeGreaterThan(0);
});

it("comes back to a broker that answers again", async () => {
  const answered: number[] = [];
  const broker = await startBroker(answered);
  const connected = using([broker], { requestTimeout: 60_000 }, connect);
  await once(broker.server, "connection");
  const [first] = broker.sockets;
  if (first !== undefined) await once(first, "close");
  answered.push(API_VERSIONS);
  expect(await connected).toBeUndefined();
});

it("keeps the connection to a broker that answers others while a request waits", async () => {
  const slow = await startBroker([API_VERSIONS]);
  const error = await using([slow], { requestTimeout: 500 }, async (admin) => {
    await admin.connect();
    const [connection] = slow.sockets;
    connection?.once("close", () => expect.fail("the connection is broken"));
    await admin.listTopics().finally(() => connection?.removeAllListeners("close"));
  });
  expect(String(error)).toContain("timed out");
  // It was asked on others meanwhile.
  expect(slow.sockets.length).toBeGreaterThan(1);
});

it("opens a connection anew that was closed while it opened", async () => {
  const broker = await startBroker([API_VERSIONS]);
  const connection = createConnection(broker);
  const opened = connection.connect();
  void connection.disconnect();
  await expect(opened).rejects.toThrow("closed while it opened");
  expect(connection.isConnected()).toBe(false);
  await connection.connect();
  await connection.send(versionsRequest());
  await connection.disconnect();
});

it("fails a request at once whose connection is closed on this side", async () => {
  const broker = await startBroker([]);
  const connection = createConnection(broker);
  await connection.connect();
  const answer = connection.send(versionsRequest());
  await once(broker.sockets[0] as Socket, "data");
  connection.socket.destroy();
  await expect(answer).rejects.toThrow("the connection is closed");
  expect(connection.isConnected()).toBe(false);
});

const lastSocket = ({ sockets }: Broker): Socket => {
  const socket = sockets.at(-1);
  if (socket === undefined) throw new Error("nobody has connected");
  return socket;
};

it("reads answers from their beginning after a connection that broke in the middle of one", async () => {
  const answered: number[] = [];
  const broker = await startBroker(answered);
  const connection = createConnection(broker);
  await connection.connect();
  const answer = connection.send(versionsRequest());
  await once(lastSocket(broker), "data");
  lastSocket(broker).write(Buffer.concat([int32(1_000), int32(0)]));
  await once(connection.socket, "data");
  lastSocket(broker).resetAndDestroy();
  await expect(answer).rejects.toThrow("onnection");
  answered.push(API_VERSIONS);
  await connection.connect();
  await connection.send(versionsRequest());
  await connection.disconnect();
});

it("keeps a connection when the one before it ends late", async () => {
  const broker = await startBroker([API_VERSIONS]);
  const connection = createConnection(broker);
  await connection.connect();
  const former = connection.socket;
  const hears = once(former, "close");
  await connection.disconnect();
  await connection.connect();
  await hears;
  expect(connection.isConnected()).toBe(true);
  await connection.send(versionsRequest());
  await connection.disconnect();
});

it("fails a login without requests of its own whose connection breaks", async () => {
  const broker = await startBroker([]);
  const connection = createConnection(broker);
  await connection.connect();
  const login = connection.sendAuthRequest({ request: { encode: () => Buffer.alloc(12) } });
  await once(lastSocket(broker), "data");
  lastSocket(broker).resetAndDestroy();
  await expect(login).rejects.toThrow("onnection");
});

it("does not call a login refused that a broker leaves without an answer, and asks another", async () => {
  const answered = [API_VERSIONS, SASL_HANDSHAKE];
  const hanging = [await startBroker(answered), await startBroker(answered)];
  const error = await using(hanging, { requestTimeout: 100, sasl: PASSWORD }, connect);
  expect(String(error)).toContain("the login broke off");
  expect(loginError("test", error)).toBeUndefined();
  expect(mayPass(error)).toBe(true);
  for (const { sockets } of hanging) expect(sockets.length).toBeGreaterThan(0);
});

it("asks a broker for topics only when it has told which requests it knows", async () => {
  const answered: number[] = [];
  const broker = await startBroker(answered);
  const error = await using([broker], { requestTimeout: 500, connectionTimeout: 500 }, async (admin) => {
    const connected = admin.connect();
    await expect.poll(() => broker.asked).toContain(API_VERSIONS);
    const listed = admin.listTopics();
    answered.push(API_VERSIONS);
    await connected;
    await listed;
  });
  // This broker gives no topics.
  expect(String(error)).toContain("timed out");
});

const createPool = (broker: Broker, times: Parameters<typeof connectionOptions>[1]) => {
  const Connections = part("network/connectionPool.js") as new (options: object) => object;
  const Pool = part("cluster/brokerPool.js") as new (
    options: object,
  ) => {
    connect(): Promise<void>;
    disconnect(): Promise<void>;
    createSeedBroker(): Promise<void>;
    connectBroker(broker: unknown): Promise<void>;
    readonly seedBroker: { isConnected(): boolean; metadata(): Promise<unknown> };
  };
  const build = (): Promise<object> => Promise.resolve(new Connections(connectionOptions(broker, times)));
  return new Pool({
    connectionPoolBuilder: { build },
    logger: quiet,
    retry: { initialRetryTime: 10, retries: 2 },
    authenticationTimeout: times.connection,
  });
};

it("gives up a connection on which a broker does not say which requests it knows", async () => {
  const answered: number[] = [];
  const broker = await startBroker(answered);
  const pool = createPool(broker, { request: 300, connection: 300 });
  const connected = pool.connect();
  await expect.poll(() => broker.asked).toContain(API_VERSIONS);
  const [former] = broker.sockets as [Socket];
  const closed = once(former, "close");
  expect(pool.seedBroker.isConnected()).toBe(false);
  answered.push(API_VERSIONS);
  await connected;
  await closed;
  expect(pool.seedBroker.isConnected()).toBe(true);
  // Asked, but this broker gives no topics.
  await expect(pool.seedBroker.metadata()).rejects.toThrow("timed out");
  await pool.disconnect();
});

it("lets those try again who have waited too long for a connection, and does not end it", async () => {
  const answered: number[] = [];
  const broker = await startBroker(answered);
  const pool = createPool(broker, { request: 60_000, connection: 500 });
  await pool.createSeedBroker();
  const first = pool.connectBroker(pool.seedBroker);
  const second = pool.connectBroker(pool.seedBroker);
  await expect.poll(() => broker.asked).toContain(API_VERSIONS);
  const [socket] = broker.sockets as [Socket];
  // Others get an answer, so this broker is not silent.
  answered.push(API_VERSIONS);
  await expect(second).rejects.toMatchObject({ name: "KafkaJSConnectionError", retriable: true });
  socket.write(answerTo(int32(0), API_VERSIONS));
  await first;
  expect(pool.seedBroker.isConnected()).toBe(true);
  await pool.disconnect();
});

it("begins no login while there is no token for it", async () => {
  const broker = await startBroker([API_VERSIONS, SASL_HANDSHAKE]);
  let isThere = false;
  const source = createTokenSource({
    fetch: () =>
      isThere
        ? Promise.resolve({ value: "a.token", livesMs: 600_000 })
        : Promise.reject(new ServiceError("token_unavailable", "the endpoint is away", { retryable: true })),
  });
  const sasl = tokenMechanism(source, {}, createLogger({ service: "test", level: "silent" }));
  const connecting = using([broker], { requestTimeout: 1_000, sasl }, connect);
  await expect.poll(() => broker.asked.length, { timeout: 10_000 }).toBeGreaterThan(1);
  expect(broker.asked).not.toContain(SASL_HANDSHAKE);
  isThere = true;
  // This broker knows no tokens.
  expect(String(await connecting)).toContain("mechanism is not supported");
  expect(broker.asked).toContain(SASL_HANDSHAKE);
});
