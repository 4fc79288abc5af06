import {
  createCluster,
  fetchBounds,
  fetchLeaders,
  fetchTopicId,
  READ_UNCOMMITTED,
} from "./kafkajs/cluster.ts";
import { type Connection, connectTo, createKafka } from "./kafkajs/connection.ts";
import { busError } from "./kafkajs/errors.ts";
import type { PartitionBounds } from "./message.ts";
import { toOffset } from "./records/offset.ts";
import { isOfFormerTopic } from "./topics/topic-stamp.ts";

/** `end`: what all in-sync replicas have; `committed`: null without a usable commit. */
export type PartitionProgress = PartitionBounds & { committed: number | null };

export type TopicProgress = { topicId: string | null; partitions: PartitionProgress[] };

/** Nothing is cached. */
export type GroupProgress = {
  start(): Promise<void>;
  stop(): Promise<void>;
  fetch(topic: string): Promise<TopicProgress>;
};

export const createGroupProgress = (deps: Connection & { groupId: string }): GroupProgress => {
  const { groupId, log } = deps;
  const abort = new AbortController();
  const cluster = createCluster(createKafka(deps));

  const fetch = async (topic: string): Promise<TopicProgress> => {
    const leaders = await fetchLeaders(cluster, topic);
    // Commits first: one beyond the end then belongs to a deleted topic of this name.
    const coordinator = await cluster.findGroupCoordinator({ groupId });
    const answer = await coordinator.offsetFetch({
      groupId,
      topics: [{ topic, partitions: Array.from(leaders.keys(), (partition) => ({ partition })) }],
    });
    const committed = new Map(
      answer.responses
        .filter((one) => one.topic === topic)
        .flatMap(({ partitions }) => partitions.map((one) => [one.partition, one])),
    );
    const bounds = await fetchBounds(cluster, topic, leaders, READ_UNCOMMITTED);
    // Last: neither commits nor ends can belong to a later topic.
    const topicId = await fetchTopicId(cluster, topic, leaders);
    const partitions = bounds.map(({ partition, start, end }) => {
      const { offset = "-1", metadata } = committed.get(partition) ?? {};
      const position = toOffset(offset);
      const isUsable = position >= 0 && position <= end && !isOfFormerTopic(metadata, topicId);
      return { partition, start, end, committed: isUsable ? position : null };
    });
    return { topicId, partitions };
  };

  return {
    start: () => connectTo(cluster, "cluster client", abort.signal, log),
    stop: async () => {
      abort.abort();
      await cluster.disconnect();
    },
    fetch: async (topic) => {
      try {
        return await fetch(topic);
      } catch (error) {
        throw busError("group_progress", "the brokers do not say how far the group is", error);
      }
    },
  };
};
