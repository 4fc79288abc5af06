import { retry } from "@conversation-export/runtime";
import kafkajs from "kafkajs";
import {
  busError,
  type Connection,
  connectTo,
  createKafka,
  mayPass,
  protocolErrorType,
  RETRY,
} from "./connection.ts";
import { lagOf } from "./lag.ts";
import { type PartitionOffset, toOffset } from "./message.ts";
import { createCluster } from "./open-cluster.ts";

export type NewTopic = {
  topic: string;
  partitions: number;
  replicationFactor?: number;
  config?: Readonly<Record<string, string>>;
};

/** The offsets of one partition; `end` is the next one to be written. */
export type PartitionBounds = { partition: number; start: number; end: number };

/** `committed` and `lag` are null when they are unknown or not there. A lag is messages, control records included. */
export type PartitionLag = {
  topic: string;
  partition: number;
  start: number | null;
  end: number | null;
  committed: number | null;
  lag: number | null;
};

export type Admin = {
  /** Waits for the brokers as long as it takes; rejects on what cannot pass and after `stop`. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Makes the topics that do not exist and leaves the others as they are; returns when all have leaders. */
  createTopics(topics: readonly NewTopic[]): Promise<void>;
  /** The names of all topics. */
  listTopics(): Promise<string[]>;
  /** Of the partition that has the fewest. */
  fetchReplicas(topic: string): Promise<number>;
  /** Names that do not exist are fine. */
  deleteTopics(topics: readonly string[]): Promise<void>;
  topicConfig(topic: string): Promise<Record<string, string>>;
  fetchOffsets(topic: string): Promise<PartitionBounds[]>;
  /** The committed offsets as the broker holds them; null where nothing usable is committed. */
  fetchCommitted(
    groupId: string,
    topics: readonly string[],
  ): Promise<{ topic: string; partition: number; offset: number | null }[]>;
  /** Every partition of the topics. A failed request rejects: the lag is unknown then, not zero. */
  fetchLag(groupId: string, topics: readonly string[]): Promise<PartitionLag[]>;
  /** Moves a group that has no members, all partitions or none; rejects while it has some. */
  setCommitted(groupId: string, offsets: readonly PartitionOffset[]): Promise<void>;
};

const TOPIC_DEADLINE_MS = 30_000;

/** A loaded broker may not know yet, or still know, a topic that another of its threads has changed. */
const isPropagating = (error: unknown): boolean =>
  ["UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"].includes(
    protocolErrorType(error) ?? "",
  );

export const createAdmin = (deps: Connection): Admin => {
  const { log } = deps;
  const abort = new AbortController();
  const admin = createKafka(deps).admin({ retry: { ...RETRY, retries: 4 } });
  const waiting = {
    signal: abort.signal,
    deadlineMs: TOPIC_DEADLINE_MS,
    retryable: (error: unknown) => isPropagating(error) || mayPass(error),
  };

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

  const fetchCommitted = async (groupId: string, topics: readonly string[]) =>
    (await admin.fetchOffsets({ groupId, topics: [...topics] })).flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset }) => {
        const committed = toOffset(offset);
        return { topic, partition, offset: committed < 0 ? null : committed };
      }),
    );

  return {
    start: () => connectTo(admin, "admin client", abort.signal, log),
    stop: async () => {
      abort.abort();
      await admin.disconnect();
    },
    createTopics: (topics) =>
      call("create_topics", async () => {
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
        // Metadata names a leader before that broker knows that it leads: only an answer from it tells.
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
    fetchOffsets: (topic) => call("fetch_offsets", () => fetchOffsets(topic)),
    fetchCommitted: (groupId, topics) => call("fetch_committed", () => fetchCommitted(groupId, topics)),
    fetchLag: (groupId, topics) =>
      call("fetch_lag", async () => {
        const committed = await fetchCommitted(groupId, topics);
        const bounds = await Promise.all(topics.map(fetchOffsets));
        return topics.flatMap((topic, index) =>
          (bounds[index] ?? []).map(({ partition, start, end }) => {
            const found = committed.find((entry) => entry.topic === topic && entry.partition === partition);
            const position = found?.offset ?? null;
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
        const topics = Array.from(
          Map.groupBy(offsets, (entry) => entry.topic),
          ([topic, entries]) => ({
            topic,
            partitions: entries.map(({ partition, offset }) => ({ partition, offset: String(offset) })),
          }),
        );
        // kafkajs' own way joins the group for each topic, which takes as long as a fetch waits.
        const cluster = createCluster(createKafka(deps));
        try {
          await cluster.connect();
          const coordinator = await cluster.findGroupCoordinator({ groupId });
          await coordinator.offsetCommit({ groupId, groupGenerationId: -1, memberId: "", topics });
        } finally {
          await cluster.disconnect();
        }
      }),
  };
};
