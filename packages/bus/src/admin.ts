import { retry } from "@conversation-export/runtime";
import kafkajs from "kafkajs";
import { byTopic } from "./by-topic.ts";
import { askCoordinator } from "./kafkajs/ask-coordinator.ts";
import { createCluster, fetchLeaders, fetchTopicId, type OpenCluster } from "./kafkajs/cluster.ts";
import { type Connection, connectTo, createKafka, RETRY } from "./kafkajs/connection.ts";
import { busError, mayBeCreatedLater, mayPass, protocolErrorType } from "./kafkajs/errors.ts";
import { lagOf } from "./lag.ts";
import type { PartitionBounds, PartitionOffset } from "./message.ts";
import { toOffset } from "./records/offset.ts";
import { isOfFormerTopic, stampOf } from "./topics/topic-stamp.ts";

export type NewTopic = {
  topic: string;
  partitions: number;
  replicationFactor?: number;
  config?: Readonly<Record<string, string>>;
};

/** `committed`: null without one in this topic; control records count as lag. */
export type PartitionLag = PartitionBounds & { topic: string; committed: number | null; lag: number };

export type Admin = {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Leaves existing topics as they are; waits until all have leaders. */
  createTopics(topics: readonly NewTopic[], deadlineMs?: number): Promise<void>;
  listTopics(): Promise<string[]>;
  fetchReplicas(topic: string): Promise<number>;
  deleteTopics(topics: readonly string[]): Promise<void>;
  topicConfig(topic: string): Promise<Record<string, string>>;
  /** null: none, as before Kafka 2.8. */
  fetchTopicId(topic: string): Promise<string | null>;
  fetchOffsets(topic: string): Promise<PartitionBounds[]>;
  /** ms since the epoch; the end when nothing follows. */
  fetchOffsetsAt(topic: string, instant: number): Promise<PartitionOffset[]>;
  fetchBrokers(): Promise<number>;
  fetchMembers(groupId: string): Promise<number>;
  fetchCommitted(
    groupId: string,
    topics: readonly string[],
  ): Promise<{ topic: string; partition: number; offset: number | null }[]>;
  /** A failed request rejects: the lag is unknown then. */
  fetchLag(groupId: string, topics: readonly string[]): Promise<PartitionLag[]>;
  /** Rejects while the group has members. */
  setCommitted(groupId: string, offsets: readonly PartitionOffset[]): Promise<void>;
};

const TOPIC_DEADLINE_MS = 30_000;

/** A loaded broker may still know the former state. */
const isPropagating = (error: unknown): boolean =>
  ["UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"].includes(
    protocolErrorType(error) ?? "",
  );

export const createAdmin = (deps: Connection): Admin => {
  const { log } = deps;
  const abort = new AbortController();
  const admin = createKafka(deps).admin({ retry: { ...RETRY, retries: 4 } });
  const waitingFor = (deadlineMs: number) => ({
    signal: abort.signal,
    deadlineMs,
    retryable: (error: unknown) => isPropagating(error) || mayPass(error) || mayBeCreatedLater(error),
  });

  const call = async <T>(code: string, operation: () => Promise<T>): Promise<T> => {
    try {
      return await operation();
    } catch (error) {
      throw busError(code, "admin request failed", error);
    }
  };

  const fetchOffsets = async (topic: string): Promise<PartitionBounds[]> =>
    (await admin.fetchTopicOffsets(topic))
      .map(({ partition, low, high }) => ({ partition, start: toOffset(low), end: toOffset(high) }))
      .sort((a, b) => a.partition - b.partition);

  // kafkajs' admin client gives no ids, and joins the group to commit, which is slow.
  const ownCluster = createCluster(createKafka(deps));
  let connected: Promise<void> | undefined;
  const cluster = async (): Promise<OpenCluster> => {
    connected ??= ownCluster.connect().catch((error: unknown) => {
      connected = undefined;
      throw error;
    });
    await connected;
    return ownCluster;
  };

  const topicIdOf = async (topic: string): Promise<string | null> => {
    const open = await cluster();
    return fetchTopicId(open, topic, await fetchLeaders(open, topic));
  };

  const fetchCommitted = async (groupId: string, topics: readonly string[]) =>
    (await askCoordinator(() => admin.fetchOffsets({ groupId, topics: [...topics] }), abort.signal)).flatMap(
      ({ topic, partitions }) =>
        partitions.map(({ partition, offset, metadata }) => {
          const committed = toOffset(offset);
          return { topic, partition, offset: committed < 0 ? null : committed, stamp: metadata };
        }),
    );

  return {
    start: () => connectTo(admin, "admin client", abort.signal, log),
    stop: async () => {
      abort.abort();
      await Promise.all([admin.disconnect(), ownCluster.disconnect()]);
    },
    createTopics: (topics, deadlineMs = TOPIC_DEADLINE_MS) =>
      call("create_topics", async () => {
        const waiting = waitingFor(deadlineMs);
        await retry(
          () =>
            admin.createTopics({
              waitForLeaders: true,
              topics: topics.map(({ topic, partitions, replicationFactor, config = {} }) => ({
                topic,
                numPartitions: partitions,
                ...(replicationFactor !== undefined && { replicationFactor }),
                configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
              })),
            }),
          waiting,
        );
        await retry(() => admin.fetchTopicMetadata({ topics: topics.map(({ topic }) => topic) }), waiting);
        // Metadata names a leader before that broker knows that it leads.
        for (const { topic } of topics) await retry(() => admin.fetchTopicOffsets(topic), waiting);
      }),
    listTopics: () => call("list_topics", () => admin.listTopics()),
    fetchReplicas: (topic) =>
      call("fetch_replicas", async () => {
        const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
        return Math.min(
          ...topics.flatMap(({ partitions }) => partitions.map(({ replicas }) => replicas.length)),
        );
      }),
    deleteTopics: (topics) =>
      call("delete_topics", async () => {
        try {
          await admin.deleteTopics({ topics: [...topics] });
        } catch (error) {
          if (!isPropagating(error)) throw error;
        }
      }),
    topicConfig: (topic) =>
      call("topic_config", async () => {
        const { resources } = await admin.describeConfigs({
          includeSynonyms: false,
          resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
        });
        return Object.fromEntries(
          resources.flatMap(({ configEntries }) =>
            configEntries.map(({ configName, configValue }) => [configName, configValue]),
          ),
        );
      }),
    fetchTopicId: (topic) => call("fetch_topic_id", () => topicIdOf(topic)),
    fetchOffsets: (topic) => call("fetch_offsets", () => fetchOffsets(topic)),
    fetchOffsetsAt: (topic, instant) =>
      call("fetch_offsets", async () =>
        (await admin.fetchTopicOffsetsByTimestamp(topic, instant)).map(({ partition, offset }) => ({
          topic,
          partition,
          offset: toOffset(offset),
        })),
      ),
    fetchBrokers: () => call("fetch_brokers", async () => (await admin.describeCluster()).brokers.length),
    fetchMembers: (groupId) =>
      call("fetch_members", async () => {
        const { groups } = await askCoordinator(() => admin.describeGroups([groupId]), abort.signal);
        return groups.reduce((sum, { members }) => sum + members.length, 0);
      }),
    fetchCommitted: (groupId, topics) =>
      call("fetch_committed", async () =>
        (await fetchCommitted(groupId, topics)).map(({ topic, partition, offset }) => ({
          topic,
          partition,
          offset,
        })),
      ),
    fetchLag: (groupId, topics) =>
      call("fetch_lag", async () => {
        const committed = await fetchCommitted(groupId, topics);
        const bounds = await Promise.all(topics.map(fetchOffsets));
        const ids = await Promise.all(topics.map(topicIdOf));
        return topics.flatMap((topic, index) =>
          (bounds[index] ?? []).map(({ partition, start, end }) => {
            const found = committed.find((entry) => entry.topic === topic && entry.partition === partition);
            const isOfFormer = isOfFormerTopic(found?.stamp, ids[index] ?? null);
            const position = isOfFormer ? null : (found?.offset ?? null);
            return {
              topic,
              partition,
              start,
              end,
              committed: position,
              lag: lagOf({ start, end, position }),
            };
          }),
        );
      }),
    setCommitted: (groupId, offsets) =>
      call("set_committed", async () => {
        const topics = await Promise.all(
          byTopic(offsets, (entry) => entry).map(async ({ topic, partitions }) => {
            const metadata = stampOf(await topicIdOf(topic));
            return {
              topic,
              partitions: partitions.map(({ partition, offset }) => ({
                partition,
                offset: String(offset),
                metadata,
              })),
            };
          }),
        );
        await askCoordinator(async () => {
          const coordinator = await (await cluster()).findGroupCoordinator({ groupId });
          await coordinator.offsetCommit({ groupId, groupGenerationId: -1, memberId: "", topics });
        }, abort.signal);
      }),
  };
};
