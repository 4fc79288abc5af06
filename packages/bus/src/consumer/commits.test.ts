import { createLogger } from "@conversation-export/runtime";
import kafkajs, { type OffsetsByTopicPartition } from "kafkajs";
import { expect, it } from "vitest";
import { createCommits } from "./commits.ts";
import { createMembership, type Membership } from "./membership.ts";

const protocolError = (type: string, retriable: boolean) =>
  Object.assign(new kafkajs.KafkaJSProtocolError(new Error(type)), { type, retriable });

const OFFSETS = [
  { topic: "a", partition: 0, offset: 5 },
  { topic: "b", partition: 1, offset: 7 },
  { topic: "a", partition: 2, offset: 9 },
];

const startUnread = () => {
  const membership: Membership = Object.assign(createMembership(), { phase: "joined", epoch: 2 } as const);
  const commits = createCommits({
    membership,
    topics: { stampOf: (topic) => (topic === "unread" ? undefined : `id of ${topic}`) },
    signal: new AbortController().signal,
    metrics: undefined,
    log: createLogger({ service: "test", level: "silent" }),
  });
  /** What goes out by a batch that comes now. */
  const takeBatch = (): readonly OffsetsByTopicPartition[] => {
    const requests: OffsetsByTopicPartition[] = [];
    commits.sendBy((request) => {
      requests.push(request);
      return Promise.resolve();
    });
    return requests;
  };
  return { membership, commits, takeBatch };
};

const start = () => {
  const { membership, commits, takeBatch } = startUnread();
  return { membership, commits, requests: takeBatch() };
};

it("commits by the last batch, and nothing before one has come", async () => {
  const { commits, takeBatch } = startUnread();
  expect(await commits.commit(2, OFFSETS)).toBe("fenced");
  const former = takeBatch();
  const requests = takeBatch();
  expect(await commits.commit(2, OFFSETS)).toBe("committed");
  commits.sendBy(undefined);
  expect(await commits.commit(2, OFFSETS)).toBe("fenced");
  expect(former).toEqual([]);
  expect(requests).toEqual([
    {
      topics: [
        {
          topic: "a",
          partitions: [
            { partition: 0, offset: "5", metadata: "id of a" },
            { partition: 2, offset: "9", metadata: "id of a" },
          ],
        },
        { topic: "b", partitions: [{ partition: 1, offset: "7", metadata: "id of b" }] },
      ],
    },
  ]);
});

it("fences another epoch, and every epoch while the member joins", async () => {
  const { membership, commits, requests } = start();
  expect(await commits.commit(1, OFFSETS)).toBe("fenced");
  membership.phase = "draining";
  expect(await commits.commit(2, [])).toBe("committed");
  membership.phase = "joining";
  expect(await commits.commit(2, OFFSETS)).toBe("fenced");
  expect(await commits.commit(2, [])).toBe("fenced");
  expect(requests).toEqual([]);
});

it("repeats what may pass, and takes a lost generation for fenced", async () => {
  const { commits } = start();
  let calls = 0;
  commits.sendBy(() =>
    ++calls === 1 ? Promise.reject(protocolError("GROUP_LOAD_IN_PROGRESS", true)) : Promise.resolve(),
  );
  expect([await commits.commit(2, OFFSETS), calls]).toEqual(["committed", 2]);
  commits.sendBy(() => Promise.reject(protocolError("ILLEGAL_GENERATION", false)));
  expect(await commits.commit(2, OFFSETS)).toBe("fenced");
  commits.sendBy(() => Promise.reject(protocolError("OFFSET_METADATA_TOO_LARGE", false)));
  await expect(commits.commit(2, OFFSETS)).rejects.toMatchObject({ code: "commit" });
});

it("sends one commit after the other, also behind one that failed", async () => {
  const { commits } = start();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  commits.sendBy(({ topics }) => {
    const offset = topics[0]?.partitions[0]?.offset ?? "";
    order.push(offset);
    return offset === "1" ? first.promise : Promise.resolve();
  });
  const [one, two] = [1, 2].map((offset) => commits.commit(2, [{ topic: "a", partition: 0, offset }]));
  first.reject(protocolError("OFFSET_METADATA_TOO_LARGE", false));
  await expect(one).rejects.toMatchObject({ code: "commit" });
  expect(await two).toBe("committed");
  expect(order).toEqual(["1", "2"]);
});

it("commits nothing without the id of the topic in which it was read", async () => {
  const { commits, requests } = start();
  expect(await commits.commit(2, [{ topic: "unread", partition: 0, offset: 5 }])).toBe("fenced");
  expect(requests).toEqual([]);
});
