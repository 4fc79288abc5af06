import { createLogger } from "@conversation-export/runtime";
import kafkajs from "kafkajs";
import { describe, expect, it } from "vitest";
import {
  createSending,
  type OutgoingMessage,
  splitByBytes,
  splitByPartition,
  toHeaders,
} from "./producer.ts";

const message = (name: string, size: number): OutgoingMessage => ({ key: name, value: Buffer.alloc(size) });

it("cuts into runs under the limit, keeps the order and loses nothing", () => {
  const messages = Array.from({ length: 50 }, (_, index) => message(`k${index}`, 100 * (index % 7)));
  const runs = splitByBytes(messages, 2000);
  expect(runs.flat()).toEqual(messages);
  expect(runs.length).toBeGreaterThan(5);
  for (const run of runs) {
    const bytes = run.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0);
    expect(bytes).toBeLessThanOrEqual(2000);
  }
});

it("counts headers, and lets a message over the limit stand alone", () => {
  const heavy: OutgoingMessage = {
    key: null,
    value: "v",
    headers: { h: ["x".repeat(1500), Buffer.alloc(1500)] },
  };
  expect(splitByBytes([message("a", 10), heavy, message("b", 10)], 2000).map((run) => run.length)).toEqual([
    1, 1, 1,
  ]);
});

it("makes nothing of nothing", () => {
  expect(splitByBytes([], 2000)).toEqual([]);
});

it("sends one partition in a request, in order", () => {
  const messages = Array.from({ length: 12 }, (_, index) => ({
    ...message(`k${index}`, 400),
    partition: index % 3,
  }));
  const runs = splitByPartition(messages, 1000);
  expect(runs.map((run) => run.map(({ key }) => key))).toEqual([
    ["k0", "k3"],
    ["k6", "k9"],
    ["k1", "k4"],
    ["k7", "k10"],
    ["k2", "k5"],
    ["k8", "k11"],
  ]);
});

it("leaves headers without a value out, but not of several values", () => {
  const headers = { none: null, absent: undefined, some: ["a", null], one: Buffer.from("b"), empty: "" };
  const written = toHeaders(headers);
  expect(written).toEqual({ some: ["a", ""], one: Buffer.from("b"), empty: "" });
  expect(Object.keys(written)).toHaveLength(3);
});

describe("requests", () => {
  const log = createLogger({ service: "test", level: "silent" });
  const away = new kafkajs.KafkaJSConnectionError("connect ECONNREFUSED 127.0.0.1:9092");
  /** As kafkajs throws when its own retries are used up. */
  const givenUp = Object.assign(new kafkajs.KafkaJSNonRetriableError(away), { cause: away });

  const setup = (failures: Error[], work: () => Promise<void> = () => Promise.resolve()) => {
    const sent: string[] = [];
    const abort = new AbortController();
    const lines: unknown[] = [];
    log.warn = (...line: unknown[]) => void lines.push(line);
    const hidden: string[] = [];
    const failure = (): string | undefined => hidden.at(-1);
    const deps = { failure, signal: abort.signal, log, pauseMs: 1, lookMs: 5 };
    const sendAll = createSending<{ readonly topic: string }>({
      ...deps,
      send: async ({ topic }) => {
        sent.push(`${topic} begins`);
        await work();
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        sent.push(`${topic} is written`);
      },
    });
    const send = (topics: readonly string[]) => sendAll(topics.map((topic) => ({ topic })));
    return { send, sent, lines, hidden, abort };
  };

  it("are sent again when kafkajs has given up a broker that is away", async () => {
    const { send, sent } = setup([givenUp, givenUp]);
    await send(["a"]);
    expect(sent).toEqual(["a begins", "a begins", "a begins", "a is written"]);
  });

  it("that wait say once for which topic, and again when another error comes", async () => {
    const missing = Object.assign(
      new kafkajs.KafkaJSProtocolError(new Error("This server does not host this topic-partition")),
      { retriable: true },
    );
    const { send, lines } = setup([missing, missing, missing, away]);
    await send(["a"]);
    const message = "writing to the topic failed, retrying";
    expect(lines).toEqual([missing, away].map((error) => [{ topic: "a", error: String(error) }, message]));
  });

  it("that kafkajs repeats by itself say once for which topic", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { send, lines, hidden } = setup([], () => promise);
    const sent = send(["a"]);
    await expect.poll(() => (hidden.push("no such topic"), lines.length)).toBe(1);
    for (let look = 0; look < 3; look += 1) await new Promise((done) => setTimeout(done, 10));
    expect(lines).toEqual([
      [{ topic: "a", error: "no such topic" }, "writing to the topic failed, retrying"],
    ]);
    resolve();
    await sent;
  });

  it("wait for those before them, whose sequence numbers they would get", async () => {
    const { send, sent } = setup([givenUp]);
    await Promise.all([send(["a", "b"]), send(["c"])]);
    const written = ["a is written", "b begins", "b is written", "c begins", "c is written"];
    expect(sent).toEqual(["a begins", "a begins", ...written]);
  });

  it("that cannot be written are given back, and the next ones go on", async () => {
    const refused = new kafkajs.KafkaJSNonRetriableError("message too large");
    const { send, sent } = setup([refused]);
    const [first, second] = await Promise.allSettled([send(["a"]), send(["b"])]);
    expect(first).toEqual({ status: "rejected", reason: refused });
    expect(second.status).toBe("fulfilled");
    expect(sent).toEqual(["a begins", "b begins", "b is written"]);
  });

  it("end when the producer stops while they wait", async () => {
    const { send, abort } = setup(Array.from({ length: 1_000 }, () => givenUp));
    const sending = Promise.allSettled([send(["a"]), send(["b"])]);
    abort.abort(new Error("stopped"));
    for (const { status } of await sending) expect(status).toBe("rejected");
  });
});
