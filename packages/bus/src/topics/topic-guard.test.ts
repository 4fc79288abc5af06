import type { Cluster } from "kafkajs";
import { expect, it } from "vitest";
import { createTopicGuard } from "./topic-guard.ts";

type Committed = { offset: string; metadata: string | null };
type Batch = { offset: string };
type Topics = { topics: { topic: string; partitions: { partition: number }[] }[] };
type Broker = {
  nodeId: number;
  listOffsets(request: Topics): Promise<object>;
  offsetFetch(request: {
    groupId: string;
    topics: { topic: string; partitions: { partition: number }[] }[];
  }): Promise<{
    responses: { topic: string; partitions: ({ partition: number } & Committed)[] }[];
  }>;
  fetch(
    request: Topics,
  ): Promise<{ responses: { topicName: string; partitions: { partition: number; messages: Batch[] }[] }[] }>;
};

const BOTH: Topics = { topics: [{ topic: "t", partitions: [{ partition: 0 }, { partition: 1 }] }] };

/** `log`: the id of the topic that the broker still reads. */
const setUp = (id: string | null) => {
  const world = {
    id,
    log: id,
    unread: [] as number[],
    asked: [] as number[][],
    committed: [] as Committed[],
  };
  const former: unknown[] = [];
  const broker: Broker = {
    nodeId: 1,
    offsetFetch: ({ topics }) =>
      Promise.resolve({
        responses: topics.map(({ topic, partitions }) => ({
          topic,
          partitions: partitions.map(({ partition }) => ({
            partition,
            ...(world.committed[partition] ?? { offset: "-1", metadata: null }),
          })),
        })),
      }),
    listOffsets: () => Promise.resolve({}),
    fetch: () => {
      const partitions = [0, 1].map((partition) => ({ partition, messages: [{ offset: "1" }] }));
      return Promise.resolve({ responses: [{ topicName: "t", partitions }] });
    },
  };
  const guard = createTopicGuard((topic, partitions) => void former.push([topic, partitions]), {
    ids: (_, topics) => Promise.resolve(new Map(topics.map((topic) => [topic, world.id]))),
    served: (_, logs) => {
      world.asked.push(logs.map(({ partition }) => partition));
      const isSame = logs.every(({ topicId }) => topicId === world.log);
      return Promise.resolve(
        isSame ? logs.filter(({ partition }) => !world.unread.includes(partition)) : undefined,
      );
    },
  });
  const cluster = { findBroker: () => Promise.resolve(broker) };
  guard.attach(cluster as unknown as Cluster);
  guard.begin();
  const positions = async (): Promise<string[]> => {
    const topics = [{ topic: "t", partitions: [{ partition: 0 }, { partition: 1 }] }];
    const answer = await (await cluster.findBroker()).offsetFetch({ groupId: "g", topics });
    return answer.responses.flatMap(({ partitions }) => partitions.map(({ offset }) => offset));
  };
  return { world, former, guard, cluster, positions };
};

it("takes offsets of the present topic, and those that tools have committed", async () => {
  const { world, former, guard, positions } = setUp("one");
  expect(guard.stampOf("t")).toBeUndefined();
  world.committed = [
    { offset: "7", metadata: "topic-id=one" },
    { offset: "8", metadata: "" },
  ];
  expect(await positions()).toEqual(["7", "8"]);
  expect(guard.stampOf("t")).toBe("topic-id=one");
  expect(former).toEqual([]);
});

it("takes no offset of a former topic", async () => {
  const { world, former, positions } = setUp("two");
  world.committed = [
    { offset: "7", metadata: "topic-id=one" },
    { offset: "8", metadata: "topic-id=two" },
  ];
  expect(await positions()).toEqual(["-1", "8"]);
  expect(former).toEqual([["t", [0]]]);
});

it("lets the consumer join anew when a topic was created anew, and not before it did", async () => {
  const { world, guard, cluster, positions } = setUp("one");
  await positions();
  await guard.look();
  await cluster.findBroker();
  world.id = "two";
  await cluster.findBroker();
  await guard.look();
  const rejoin = { type: "REBALANCE_IN_PROGRESS" };
  await expect(cluster.findBroker()).rejects.toMatchObject(rejoin);
  // What is still to be committed counts in the former topic.
  expect(guard.stampOf("t")).toBe("topic-id=one");
  guard.begin();
  expect(guard.stampOf("t")).toBeUndefined();
  await positions();
  expect(guard.stampOf("t")).toBe("topic-id=two");
});

it("lets the consumer join anew when a single position is asked for in another topic", async () => {
  const { world, guard, positions } = setUp("one");
  await positions();
  world.id = "two";
  await expect(positions()).rejects.toMatchObject({ type: "REBALANCE_IN_PROGRESS" });
  expect(guard.stampOf("t")).toBe("topic-id=one");
});

it("knows what was fetched before the last join", async () => {
  const { guard, cluster, positions } = setUp("one");
  const fetched = async (): Promise<Batch> => {
    const { responses } = await (await cluster.findBroker()).fetch(BOTH);
    const batch = responses[0]?.partitions[0]?.messages[0];
    if (batch === undefined) throw new Error("nothing");
    return batch;
  };
  await positions();
  const before = await fetched();
  expect(guard.isRecent(before)).toBe(true);
  guard.begin();
  expect(guard.isRecent(before)).toBe(false);
  // Before the ids are known, its topic is unknown.
  const between = await fetched();
  await positions();
  expect(guard.isRecent(between)).toBe(false);
  expect(guard.isRecent(await fetched())).toBe(true);
});

it.each([
  "fetch",
  "listOffsets",
] as const)("takes no answer to %s from a former topic's log", async (request) => {
  const { world, guard, cluster, positions } = setUp("two");
  // The partitions' leader has not changed to the new topic.
  world.log = "one";
  await positions();
  const rejoin = { type: "REBALANCE_IN_PROGRESS" };
  const broker = await cluster.findBroker();
  await expect(broker[request](BOTH)).rejects.toMatchObject(rejoin);
  await expect(cluster.findBroker()).rejects.toMatchObject(rejoin);
  guard.begin();
  await positions();
  world.log = "two";
  await (await cluster.findBroker())[request](BOTH);
});

it("asks a broker once in each join of which topic its logs are", async () => {
  const { world, guard, cluster, positions } = setUp("one");
  const broker = await cluster.findBroker();
  const some = (partition: number): Topics => ({ topics: [{ topic: "t", partitions: [{ partition }] }] });
  await positions();
  await broker.listOffsets(some(1));
  await broker.fetch(BOTH);
  await broker.fetch(BOTH);
  expect(world.asked).toEqual([[1], [0]]);
  guard.begin();
  await positions();
  await broker.fetch(BOTH);
  expect(world.asked).toEqual([[1], [0], [0, 1]]);
});

it("asks again for a log that the broker cannot read, and takes the others", async () => {
  const { world, guard, cluster, positions } = setUp("one");
  world.unread = [1];
  await positions();
  const broker = await cluster.findBroker();
  const areRecent = async (): Promise<boolean[]> =>
    (await broker.fetch(BOTH)).responses.flatMap(({ partitions }) =>
      partitions.map(({ messages }) => messages.every((batch) => guard.isRecent(batch))),
    );
  expect(await areRecent()).toEqual([true, false]);
  await expect(broker.listOffsets(BOTH)).rejects.toThrow("a broker cannot read a partition");
  world.unread = [];
  expect(await areRecent()).toEqual([true, true]);
  expect(world.asked).toEqual([[0, 1], [1], [1]]);
});

it("changes nothing where brokers give no ids", async () => {
  const { world, guard, cluster, positions } = setUp(null);
  world.committed = [{ offset: "7", metadata: "topic-id=one" }];
  expect(await positions()).toEqual(["7", "-1"]);
  expect(guard.stampOf("t")).toBeNull();
  world.id = "one";
  await guard.look();
  await positions();
  await (await cluster.findBroker()).fetch(BOTH);
  expect(world.asked).toEqual([]);
});
