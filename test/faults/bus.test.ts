import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type BusMessage,
  type Consumer,
  type ConsumerDeps,
  createConsumer,
  createProducer,
  type MessageSlice,
  type OutgoingMessage,
  type Taken,
} from "@conversation-export/bus";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import { beforeEach, expect, it, onTestFailed } from "vitest";
import { bySize } from "../system/size.ts";
import { until } from "../system/until.ts";
import { useBus } from "../system/test-bus.ts";

const DEADLINE_MS = 120_000;

let lines: { level: string; msg: string }[] = [];

const log = createLogger({
  service: "test",
  level: "debug",
  destination: {
    write: (line: string) => void lines.push(JSON.parse(line) as { level: string; msg: string }),
  },
});

const bus = useBus({ log });
const { connection, newName, newTopic, stops } = bus;

beforeEach(() => {
  lines = [];
});

const numbered = (count: number, first = 0): OutgoingMessage[] =>
  Array.from({ length: count }, (_, index) => ({ key: `k${first + index}`, value: String(first + index) }));

const valuesOf = (messages: readonly BusMessage[]): number[] => messages.map(({ value }) => Number(value));
const range = (count: number, first = 0): number[] =>
  Array.from({ length: count }, (_, index) => first + index);

const partitionsOf = (entries: readonly { partition: number }[]): number[] =>
  entries.map(({ partition }) => partition).sort((a, b) => a - b);
const busy = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

const SESSION_MS = 6_000;

type Member = {
  consumer: Consumer;
  seen: (BusMessage & { epoch: number })[];
  epochs: number[];
  /** Highest settled offset + 1 by partition, in the current epoch. */
  settled: Map<number, number>;
  commitAll(epoch?: number): Promise<string>;
  crashes: unknown[];
};

const startMember = async (
  topic: string,
  overrides: Partial<ConsumerDeps> & { take?: (slice: MessageSlice, member: Member) => Taken } = {},
): Promise<Member> => {
  const { take, ...rest } = overrides;
  const member: Member = {
    seen: [],
    epochs: [],
    settled: new Map(),
    crashes: [],
    commitAll: (epoch = member.epochs.at(-1) ?? 0) =>
      member.consumer.commit(
        epoch,
        [...member.settled].map(([partition, offset]) => ({ topic, partition, offset })),
      ),
    consumer: createConsumer({
      ...connection(),
      groupId: `group-${topic}`,
      topics: [topic],
      sessionTimeoutMs: SESSION_MS,
      onMessages: (slice) => {
        const taken = take?.(slice, member) ?? "continue";
        const count = typeof taken === "object" ? taken.processed : slice.messages.length;
        for (const message of slice.messages.slice(0, count))
          member.seen.push({ ...message, epoch: slice.epoch });
        const last = slice.messages[count - 1];
        if (count === slice.messages.length) member.settled.set(slice.partition, slice.nextOffset);
        else if (last !== undefined) member.settled.set(slice.partition, last.offset + 1);
        return taken;
      },
      onAssigned: ({ epoch }) => {
        member.epochs.push(epoch);
        member.settled.clear();
      },
      onRebalancing: () => undefined,
      onCrash: (error) => member.crashes.push(error),
      ...rest,
    }),
  };
  stops.push(() => member.consumer.stop());
  onTestFailed(() =>
    console.log(
      lines
        .slice(-60)
        .map((line) => JSON.stringify(line))
        .join("\n"),
    ),
  );
  await member.consumer.start();
  return member;
};

it("carries keys, values, headers and times as they are, compressed or not", async () => {
  const topic = await newTopic();
  for (const compression of ["none", "gzip", "zstd"] as const) {
    const compressing = createProducer({ ...connection(), compression });
    await compressing.start();
    stops.push(() => compressing.stop());
    await compressing.send(topic, [
      {
        key: "k",
        value: Buffer.from([0, 255, 10]),
        headers: { h: "v", raw: Buffer.from([0, 200]) },
        timestamp: 1.7e12,
      },
      { key: null, value: null },
      { key: "big", value: "x".repeat(300_000) },
    ]);
  }
  const { seen, consumer } = await startMember(topic);
  await until("nine messages", DEADLINE_MS, () => seen.length === 9);
  for (const first of [0, 3, 6]) {
    const [a, b, c] = seen.slice(first);
    expect(a).toMatchObject({ topic, partition: 0, offset: first, timestamp: 1.7e12 });
    expect(a?.key?.toString()).toBe("k");
    expect(a?.value).toEqual(Buffer.from([0, 255, 10]));
    expect(a?.headers["h"]?.toString()).toBe("v");
    expect(a?.headers["raw"]).toEqual(Buffer.from([0, 200]));
    expect([b?.key, b?.value, b?.headers]).toEqual([null, null, {}]);
    expect(c?.value?.length).toBe(300_000);
  }
  expect(consumer.isJoined()).toBe(true);
  expect(consumer.assigned()).toEqual([{ topic, partition: 0 }]);
});

it("sends more than one request may hold, in order", async () => {
  const topic = await newTopic();
  const messages = range(40).map((index) => ({ key: "k", value: String(index).padEnd(100_000, " ") }));
  await bus.producer.send(topic, messages);
  const { seen } = await startMember(topic);
  await until("all", DEADLINE_MS, () => seen.length >= 40);
  expect(valuesOf(seen)).toEqual(range(40));
});

it("pauses one partition while others flow, keeps its place in the group and goes on after resume", async () => {
  const topic = await newTopic(2);
  const member = await startMember(topic, {
    take: ({ partition }, { seen }) =>
      partition === 0 && !seen.some((message) => message.partition === 0) ? "pause" : "continue",
  });
  const of = (partition: number) =>
    valuesOf(member.seen.filter((message) => message.partition === partition));
  const send = (first: number) =>
    bus.producer.send(
      topic,
      numbered(10, first).flatMap((message) => [0, 1].map((partition) => ({ ...message, partition }))),
    );
  await send(0);
  await until("the first messages of both", DEADLINE_MS, () => of(0).length > 0 && of(1).length === 10);
  expect(member.consumer.pausedCount()).toBe(1);
  const before = of(0).length;
  // Longer than the session: only heartbeats keep the member.
  const pausedAt = Date.now();
  for (let first = 10; Date.now() - pausedAt < 1.2 * SESSION_MS; first += 10) {
    await send(first);
    const expected = first + 10;
    await until("the other partition", DEADLINE_MS, () => of(1).length === expected);
  }
  expect(of(0)).toHaveLength(before);
  member.consumer.pause(member.consumer.assigned());
  expect(member.consumer.pausedCount()).toBe(2);
  await sleep(1.1 * SESSION_MS);
  expect(Date.now() - member.consumer.lastTick()).toBeLessThan(SESSION_MS);
  const total = of(1).length;
  member.consumer.resume(member.consumer.assigned());
  await until("the rest", DEADLINE_MS, () => of(0).length >= total);
  expect([of(0), of(1)]).toEqual([range(total), range(total)]);
  expect(member.epochs).toEqual([1]);
  expect(member.consumer.pausedCount()).toBe(0);
});

it("delivers again exactly what was not taken", async () => {
  const topic = await newTopic();
  await bus.producer.send(topic, numbered(400));
  let turn = 0;
  const member = await startMember(topic, {
    take: ({ messages }) => {
      turn++;
      busy(messages.length / 4);
      if (turn % 3 === 0) return { processed: 0, pause: true };
      if (turn % 3 === 1) return { processed: Math.min(7, messages.length), pause: true };
      return "pause";
    },
  });
  await until("all", DEADLINE_MS, () => {
    member.consumer.resume(member.consumer.assigned());
    return member.seen.length >= 400;
  });
  expect(valuesOf(member.seen)).toEqual(range(400));
  expect(turn).toBeGreaterThan(10);
});

it("yields the event loop and keeps the session while a slow handler works through one large batch", async () => {
  const topic = await newTopic();
  // A millisecond each: longer than the session.
  const count = 1.2 * SESSION_MS;
  await bus.producer.send(topic, numbered(count));
  let longest = 0;
  const member = await startMember(topic, {
    take: ({ messages }, { seen }) => {
      busy(messages.length);
      if (seen.length > 200) longest = Math.max(longest, messages.length);
      return "continue";
    },
  });
  await until("all", DEADLINE_MS, () => member.seen.length >= count);
  expect(valuesOf(member.seen)).toEqual(range(count));
  expect(member.epochs).toEqual([1]);
  expect(longest).toBeLessThan(40);
});

it("drains before it rejoins, fences the old epoch after, and delivers again what was not committed", async () => {
  const topic = await newTopic(4);
  const count = bySize(4000, 100_000);
  await bus.producer.send(topic, numbered(count));
  const drained: string[] = [];
  const first = await startMember(topic, {
    onRebalancing: async () => {
      await sleep(500);
      const offsets = [...first.settled].filter(([partition]) => partition < 2);
      const outcome = await first.consumer.commit(
        first.epochs.at(-1) ?? 0,
        offsets.map(([partition, offset]) => ({ topic, partition, offset })),
      );
      drained.push(outcome);
    },
  });
  await until("everything at the first member", DEADLINE_MS, () => first.seen.length === count);
  const uncommitted = first.seen.filter(({ partition }) => partition >= 2).map(({ value }) => Number(value));
  expect(uncommitted.length).toBeGreaterThan(0);
  const oldEpoch = first.epochs.at(-1) ?? 0;
  const oldOffsets = [...first.settled].map(([partition, offset]) => ({ topic, partition, offset }));

  const second = await startMember(topic, {});
  await until("a second assignment", DEADLINE_MS, () => first.epochs.length > 1 && first.consumer.isJoined());
  expect(drained[0]).toBe("committed");
  const assigned = [...first.consumer.assigned(), ...second.consumer.assigned()];
  expect(partitionsOf(assigned)).toEqual([0, 1, 2, 3]);
  expect(first.consumer.assigned()).toHaveLength(2);

  // A late commit of the old epoch would skip the other member's messages.
  expect(await first.consumer.commit(oldEpoch, oldOffsets)).toBe("fenced");
  const committed = await bus.admin.fetchCommitted(`group-${topic}`, [topic]);
  expect(partitionsOf(committed.filter(({ offset }) => offset !== null))).toEqual([0, 1]);

  const again = () => [...first.seen.filter(({ epoch }) => epoch > oldEpoch), ...second.seen];
  await until("the rest again", DEADLINE_MS, () => again().length >= uncommitted.length);
  expect(valuesOf(again()).sort((a, b) => a - b)).toEqual(uncommitted.sort((a, b) => a - b));

  expect(await first.commitAll()).toBe("committed");
  expect(await second.commitAll()).toBe("committed");
  const lag = await bus.admin.fetchLag(`group-${topic}`, [topic]);
  expect(lag.map((partition) => partition.lag)).toEqual([0, 0, 0, 0]);
  expect(first.crashes).toEqual([]);
});

it("comes back with a new epoch after the group has expelled it", async () => {
  const topic = await newTopic();
  await bus.producer.send(topic, numbered(100));
  const drains: string[] = [];
  const member = await startMember(topic, {
    onRebalancing: async () => {
      drains.push(await member.commitAll());
    },
    take: () => {
      if (member.epochs.length === 1) busy(1.5 * SESSION_MS);
      return "continue";
    },
  });
  await until(
    "all in the second epoch",
    DEADLINE_MS,
    () => member.seen.filter(({ epoch }) => epoch === 2).length === 100,
  );
  expect(member.epochs).toEqual([1, 2]);
  expect(drains).toEqual(["fenced"]);
  expect(valuesOf(member.seen.filter(({ epoch }) => epoch === 2))).toEqual(range(100));
  expect(await member.commitAll()).toBe("committed");
});

it("loses nothing when members come and go under load, each committing what it settled", async () => {
  const topic = await newTopic(6);
  const seen = new Set<number>();
  const join = async () => {
    const member: Member = await startMember(topic, {
      onRebalancing: async () => {
        await member.commitAll();
      },
      take: ({ messages }) => {
        for (const value of valuesOf(messages)) seen.add(value);
        return "continue";
      },
    });
    return member;
  };
  const first = await join();
  let sent = 0;
  let done = false;
  const sending = (async () => {
    for (; !done; sent += 200) await bus.producer.send(topic, numbered(200, sent));
  })();
  for (let round = 0; round < bySize(2, 10); round++) {
    const epochs = first.epochs.length;
    const other = await join();
    await until("the rejoin of the first", DEADLINE_MS, () => first.epochs.length > epochs);
    await until("work at the other", DEADLINE_MS, () => other.seen.length > 100);
    // Leaves without committing, as a crash would.
    await other.consumer.stop();
    await until("the first alone", DEADLINE_MS, () => first.consumer.assigned().length === 6);
  }
  done = true;
  await sending;
  await until("all", DEADLINE_MS, () => seen.size === sent);
  await until("all committed", DEADLINE_MS, async () => {
    await first.commitAll();
    return (await bus.admin.fetchLag(`group-${topic}`, [topic])).every(({ lag }) => lag === 0);
  });
  expect(first.crashes).toEqual([]);
});

it("outlives a broker that is killed: nothing lost, nothing written twice, commits go on", async () => {
  const topic = await newTopic(3);
  const member = await startMember(topic);
  const rounds = bySize(1, 5);
  let sent = 0;
  for (let round = 0; round < rounds; round++) {
    let down = true;
    const sending = (async () => {
      while (down || sent % 10 !== 0) {
        await bus.producer.send(topic, numbered(10, sent));
        sent += 10;
      }
    })();
    const before = sent;
    await until("a flow", DEADLINE_MS, () => sent > before + 200);
    const reported = lines.length;
    await bus.stack.kafka.kill();
    const pending = member.commitAll();
    await until("connections are refused", DEADLINE_MS, () =>
      lines.slice(reported).some(({ msg }) => msg.includes("ECONNREFUSED")),
    );
    await bus.stack.kafka.start();
    const restartedAt = sent;
    await until("the flow again", DEADLINE_MS, () => sent > restartedAt + 50);
    down = false;
    await sending;
    expect(["committed", "fenced"]).toContain(await pending);
  }
  await until("all", DEADLINE_MS, () => new Set(valuesOf(member.seen)).size === sent);
  const bounds = await bus.admin.fetchOffsets(topic);
  expect(bounds.reduce((sum, { end }) => sum + end, 0)).toBe(sent);
  await until("a commit", DEADLINE_MS, async () => (await member.commitAll()) === "committed");
  await until("no lag", DEADLINE_MS, async () => {
    await member.commitAll();
    return (await bus.admin.fetchLag(`group-${topic}`, [topic])).every(({ lag }) => lag === 0);
  });
  expect(member.crashes).toEqual([]);
  expect(lines.filter(({ level }) => level === "error")).toEqual([]);
});

it("reads on after a join, also a partition that was resumed while the drain before it went on", async () => {
  const topic = await newTopic(2);
  const both = [0, 1].map((partition) => ({ topic, partition }));
  const send = (value: string) =>
    bus.producer.send(
      topic,
      both.map(({ partition }) => ({ key: null, value, partition })),
    );
  const isPaused = new Set<number>();
  let holds = true;
  const first = await startMember(topic, {
    take: ({ partition }) => {
      if (!holds) return "continue";
      isPaused.add(partition);
      return "pause";
    },
    onRebalancing: () => {
      holds = false;
      first.consumer.resume(both);
    },
  });
  await send("before");
  await until("both partitions are paused", DEADLINE_MS, () => isPaused.size === 2);
  const second = await startMember(topic);
  await until("the first has joined again", DEADLINE_MS, () => first.epochs.length === 2);
  expect(first.consumer.assigned()).toHaveLength(1);
  expect(first.consumer.pausedCount()).toBe(0);
  await send("after");
  const after = () =>
    partitionsOf([...first.seen, ...second.seen].filter(({ value }) => value?.toString() === "after"));
  await until("both partitions are read", DEADLINE_MS, () => new Set(after()).size === 2);
  expect([first.crashes, second.crashes]).toEqual([[], []]);
});

it("reads what Kafka's own code has compressed, by every codec that it has", async () => {
  // Longer than a block of Snappy (32 KiB) and LZ4 (64 KiB), and a part that does not compress.
  const values = [
    "short",
    "to and fro ".repeat(20_000),
    randomBytes(100_000).toString("base64"),
    ...Array.from({ length: 2_000 }, (_, index) => `{"number":${index}}`),
  ];
  for (const codec of ["uncompressed", "gzip", "zstd", "snappy", "lz4"]) {
    const topic = newName();
    // The broker recompresses such a topic with the Java producer's classes.
    await bus.admin.createTopics([{ topic, partitions: 1, config: { "compression.type": codec } }]);
    await bus.producer.send(
      topic,
      values.map((value, index) => ({ key: `k${index}`, value, headers: { at: String(index) } })),
    );
    const { seen, crashes } = await startMember(topic);
    await until("every message is read", DEADLINE_MS, () => {
      if (crashes.length > 0) throw crashes[0];
      return seen.length >= values.length;
    });
    expect(
      seen.map(({ value }) => value?.toString()),
      codec,
    ).toEqual(values);
    expect(seen.map(({ headers }) => headers["at"]?.toString())).toEqual(
      values.map((_, index) => String(index)),
    );
  }
});

it("waits for a topic that is made later", async () => {
  const topic = newName();
  const starting = startMember(topic);
  await until("the first refusal", DEADLINE_MS, () =>
    lines.some(({ msg }) => msg.startsWith("waiting for Kafka")),
  );
  await bus.admin.createTopics([{ topic, partitions: 1 }]);
  await bus.producer.send(topic, numbered(3));
  const { seen } = await starting;
  await until("the messages", DEADLINE_MS, () => seen.length === 3);
});

it("stops while it waits", async () => {
  const consumer = createConsumer({
    ...connection(),
    groupId: "nobody",
    topics: ["missing"],
    onMessages: () => "continue",
    onAssigned: () => undefined,
    onRebalancing: () => undefined,
    onCrash: () => undefined,
  });
  const starting = consumer.start();
  const refused = expect(starting).rejects.toThrow("aborted");
  await until("the first refusal", DEADLINE_MS, () =>
    lines.some(({ msg }) => msg.startsWith("waiting for Kafka")),
  );
  await consumer.stop();
  await refused;
});

it("surfaces a bug in the handler as a crash, once, and does not go on", async () => {
  const topic = await newTopic();
  await bus.producer.send(topic, numbered(10));
  let calls = 0;
  const bug = new TypeError("bug");
  const member = await startMember(topic, {
    take: () => {
      calls++;
      throw bug;
    },
  });
  await until("the crash", DEADLINE_MS, () => member.crashes.length > 0);
  expect(String(member.crashes[0])).toContain("bug");
  // A running first member would take part in this join.
  const other = await startMember(topic);
  await until("another member has all messages", DEADLINE_MS, () => other.seen.length === 10);
  expect(other.consumer.assigned()).toEqual([{ topic, partition: 0 }]);
  expect([calls, member.crashes.length]).toEqual([1, 1]);
});

it("reports an offset that is out of range, and starts that partition again from its beginning", async () => {
  const topic = await newTopic(2);
  await bus.producer.send(
    topic,
    [0, 1].flatMap((partition) => numbered(10).map((message) => ({ ...message, partition }))),
  );
  const groupId = `group-${topic}`;
  await bus.admin.setCommitted(groupId, [
    { topic, partition: 0, offset: 5000 },
    { topic, partition: 1, offset: 4 },
  ]);
  const lags = (await bus.admin.fetchLag(groupId, [topic])).map(({ committed, lag }) => [committed, lag]);
  expect(lags).toEqual([
    [5000, 0],
    [4, 6],
  ]);
  const metrics = createMetrics({ service: "test" });
  const { seen } = await startMember(topic, { metrics });
  await until("all", DEADLINE_MS, () => seen.length >= 16);
  expect(valuesOf(seen.filter(({ partition }) => partition === 0))).toEqual(range(10));
  expect(valuesOf(seen.filter(({ partition }) => partition === 1))).toEqual(range(6, 4));
  expect(await metrics.text()).toMatch(
    new RegExp(`conversation_export_bus_offset_out_of_range_total{topic="${topic}".*} 1`),
  );
  expect(lines.filter(({ level }) => level === "error").map(({ msg }) => msg)).toEqual([
    "Offset out of range, resetting to default offset",
  ]);
});

it("says once which topic is missing, and writes when it is there", async () => {
  const topic = newName();
  let isWritten = false;
  const sent = bus.producer.send(topic, numbered(1)).then(() => {
    isWritten = true;
  });
  const reported = () => lines.filter(({ level }) => level !== "debug" && level !== "info");
  await until("it is tried again", DEADLINE_MS, () => reported().length > 0);
  await until("kafkajs has asked some times", DEADLINE_MS, () => {
    const asked = lines.filter((line) => JSON.stringify(line).includes("does not host this topic"));
    return asked.length >= 4;
  });
  expect(isWritten).toBe(false);
  expect(reported()).toEqual([
    expect.objectContaining({ topic, msg: "writing to the topic failed, retrying" }),
  ]);
  await bus.admin.createTopics([{ topic, partitions: 1 }]);
  await sent;
});

it("writes to other partitions after a message that is too large for its topic", async () => {
  const topic = await newTopic(2, { "max.message.bytes": "100000" });
  const large = { key: null, value: Buffer.alloc(200_000), partition: 0 };
  const small = numbered(2).map((message) => ({ ...message, partition: 1 }));
  await expect(bus.producer.send(topic, [large, ...small])).rejects.toMatchObject({
    code: "produce",
    cause: { type: "MESSAGE_TOO_LARGE" },
  });
  for (const message of small) await bus.producer.send(topic, [message]);
  expect(await bus.admin.fetchOffsets(topic)).toEqual([
    { partition: 0, start: 0, end: 0 },
    { partition: 1, start: 0, end: 2 },
  ]);
});

it("writes many keys where it writes each of them", async () => {
  const [together, alone] = [await newTopic(3), await newTopic(3)];
  const messages = numbered(30);
  await bus.producer.send(together, messages);
  for (const message of messages) await bus.producer.send(alone, [message]);
  const offsets = await bus.admin.fetchOffsets(together);
  expect(offsets).toEqual(await bus.admin.fetchOffsets(alone));
  expect(offsets.map(({ end }) => end > 0)).toEqual([true, true, true]);
});

it("administers topics: making twice, configuration, deleting, offsets and lag", async () => {
  const topic = await newTopic(2);
  const config = { "message.timestamp.type": "LogAppendTime" };
  const other = newName();
  await bus.admin.createTopics([
    { topic, partitions: 2 },
    { topic: other, partitions: 1, config },
  ]);
  expect(await bus.admin.topicConfig(other)).toMatchObject(config);
  await bus.producer.send(
    topic,
    numbered(5).map((message) => ({ ...message, partition: 1 })),
  );
  expect(await bus.admin.fetchOffsets(topic)).toEqual([
    { partition: 0, start: 0, end: 0 },
    { partition: 1, start: 0, end: 5 },
  ]);
  const lags = async () =>
    (await bus.admin.fetchLag("new-group", [topic])).map(({ committed, lag }) => [committed, lag]);
  expect(await lags()).toEqual([
    [null, 0],
    [null, 5],
  ]);
  await expect(bus.admin.fetchOffsets("missing")).rejects.toMatchObject({ code: "fetch_offsets" });
  await bus.admin.deleteTopics([other]);
  await bus.admin.deleteTopics([other]);
  await expect(
    bus.producer.send(topic, [{ key: null, value: Buffer.alloc(3_000_000) }]),
  ).rejects.toMatchObject({
    code: "produce",
    retryable: false,
  });
});
