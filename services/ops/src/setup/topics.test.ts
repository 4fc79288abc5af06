import { expect, it } from "vitest";
import { topicDifference } from "./topics.ts";

const topic = { topic: "messages", partitions: 6, replicas: 1 };

it("says what differs from what was asked for, and what to do", () => {
  expect(topicDifference(topic, { partitions: 6, replication: 1 })).toBeNull();
  expect(topicDifference(topic, { partitions: 12, replication: 3 })).toBe(
    "warning: messages stays as it is: it has 6 partitions, not 12 " +
      "(`kafka-topics.sh --alter --topic messages --partitions 12` adds them), " +
      "each has 1 replicas, not 3 (`kafka-reassign-partitions.sh` changes that)",
  );
  expect(topicDifference(topic, { partitions: 3 })).toMatch(/not 3 .*cannot remove partitions/);
});

it("is content with any topic when nothing was asked for", () => {
  expect(topicDifference(topic, {})).toBeNull();
});
