import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import kafkajs from "kafkajs";
import { afterEach, expect, it } from "vitest";
import { loginError, mayPass } from "./errors.ts";
import { tellLostLogins } from "./lost-login.ts";
import { leaveSilentBrokers } from "./silent-brokers.ts";

leaveSilentBrokers({ promptMs: 100, silentMs: 1000, probeMs: 100 });
tellLostLogins();

const API_VERSIONS = 18;
const SASL_HANDSHAKE = 17;
const SASL_AUTHENTICATE = 36;

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const int32 = (value: number): Buffer => Buffer.from([0, 0, value >> 8, value & 0xff]);
/** By API key, how a broker answers that knows the login `PLAIN`; others stay without an answer. */
const ANSWERS: Readonly<Record<number, Buffer>> = {
  // No error, three APIs from version 0 to 1, no throttling.
  [API_VERSIONS]: Buffer.concat([
    int16(0),
    int32(3),
    ...[API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE].flatMap((key) => [int16(key), int16(0), int16(1)]),
    int32(0),
  ]),
  [SASL_HANDSHAKE]: Buffer.concat([int16(0), int32(1), int16(5), Buffer.from("PLAIN")]),
};

type Broker = { readonly server: Server; readonly address: string; readonly sockets: Socket[] };
const brokers: Broker[] = [];
afterEach(() => {
  for (const { server, sockets } of brokers.splice(0)) {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
});

/** A broker that hangs: it takes connections and answers no request but these. */
const startHanging = async (answered: readonly number[]): Promise<Broker> => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (request) => {
      const apiKey = request.readInt16BE(4);
      const answer = answered.includes(apiKey) ? ANSWERS[apiKey] : undefined;
      if (answer === undefined) return;
      socket.write(Buffer.concat([int32(4 + answer.length), request.subarray(8, 12), answer]));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const broker = { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
  brokers.push(broker);
  return broker;
};

const connect = async (hanging: readonly Broker[], withLogin: boolean): Promise<unknown> => {
  const admin = new kafkajs.Kafka({
    brokers: hanging.map(({ address }) => address),
    retry: { retries: 30, initialRetryTime: 50, maxRetryTime: 50 },
    logLevel: kafkajs.logLevel.NOTHING,
    requestTimeout: 200,
    ...(withLogin && { sasl: { mechanism: "plain", username: "u", password: "p" } }),
  }).admin();
  try {
    return await admin.connect().catch((error: unknown) => error);
  } finally {
    await admin.disconnect();
  }
};

const connectionsOf = (broker: Broker): number => broker.sockets.length;

it("leaves a broker that answers nothing, and asks another", async () => {
  const hanging = [await startHanging([]), await startHanging([])];
  expect(String(await connect(hanging, false))).toMatch(/no answer to ApiVersions in 100 ms|is silent/);
  const counts = hanging.map(connectionsOf);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  // It is not asked at each attempt.
  expect(Math.max(...counts)).toBeLessThan(5);
});

it("comes back to a broker that answers again", async () => {
  const answered: number[] = [];
  const broker = await startHanging(answered);
  const connected = connect([broker], false);
  await once(broker.server, "connection");
  const [first] = broker.sockets;
  if (first !== undefined) await once(first, "close");
  answered.push(API_VERSIONS);
  expect(await connected).toBeUndefined();
});

it("leaves a broker that does not answer to a login, and does not call it refused", async () => {
  const answered = [API_VERSIONS, SASL_HANDSHAKE];
  const hanging = [await startHanging(answered), await startHanging(answered)];
  const error = await connect(hanging, true);
  expect(String(error)).toMatch(/no answer to SaslAuthenticate in 200 ms|is silent/);
  expect(loginError("test", error)).toBeUndefined();
  expect(mayPass(error)).toBe(true);
  expect(Math.min(...hanging.map(connectionsOf))).toBeGreaterThan(0);
});
