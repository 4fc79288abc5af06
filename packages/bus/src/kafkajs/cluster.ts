import kafkajs, { type Broker, type Cluster, type Kafka } from "kafkajs";
import { toOffset } from "../records/offset.ts";
import { METADATA_MAX_AGE_MS } from "./connection.ts";
import type { FetchedPartition } from "./fetch-response.ts";
import { privateOf } from "./internals.ts";
import { askTopicIds } from "../topics/topic-ids.ts";

/** Times with a meaning of their own in `ListOffsets`. */
export const LATEST = -1;
export const EARLIEST = -2;

/** Isolation levels: open and aborted transactions count, or they do not. */
export const READ_UNCOMMITTED = 0;
export const READ_COMMITTED = 1;

type ListOffsets = {
  isolationLevel: number;
  topics: { topic: string; partitions: { partition: number; timestamp: number }[] }[];
};
type OffsetList = {
  topic: string;
  /** `metadata`: only of committed offsets. */
  partitions: { partition: number; offset: string; metadata?: string | null }[];
}[];

type Fetch = {
  isolationLevel: number;
  maxWaitTime: number;
  minBytes: number;
  maxBytes: number;
  topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
};

/** The parts of kafkajs' own client that its types leave out. */
export type OpenBroker = Omit<Broker, "offsetFetch" | "offsetCommit" | "fetch"> & {
  listOffsets(request: ListOffsets): Promise<{ responses: OffsetList }>;
  offsetFetch(request: {
    groupId: string;
    topics: { topic: string; partitions: { partition: number }[] }[];
  }): Promise<{ responses: OffsetList }>;
  /** Rejects with the error code of a partition. Without a member the group must have none. */
  offsetCommit(request: {
    groupId: string;
    groupGenerationId: number;
    memberId: string;
    topics: { topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[];
  }): Promise<unknown>;
  /** Rejects with the error code of a partition. No responses at all: the broker throttles. */
  fetch(
    request: Fetch,
  ): Promise<{ responses: { topicName: string; partitions: readonly FetchedPartition[] }[] }>;
};
export type OpenCluster = Omit<Cluster, "metadata" | "findBroker" | "findGroupCoordinator"> & {
  /** Nothing when no broker answers. */
  metadata(request: {
    topics: string[];
  }): Promise<
    | { topicMetadata: { topic: string; partitionMetadata: { partitionId: number; leader: number }[] }[] }
    | undefined
  >;
  findBroker(node: { nodeId: number }): Promise<OpenBroker>;
  findGroupCoordinator(group: { groupId: string }): Promise<OpenBroker>;
};

/** A topic's partitions by number, with the broker that leads each. */
export type Leaders = ReadonlyMap<number, number>;

/**
 * A cluster client of kafkajs. The admin client keeps its first metadata for ever and ends partitions at the
 * first open transaction.
 */
export const createCluster = (kafka: Kafka): OpenCluster => {
  const create = privateOf(kafka, "private:Kafka:createCluster") as (options: object) => OpenCluster;
  return create.call(kafka, { allowAutoTopicCreation: false, metadataMaxAge: METADATA_MAX_AGE_MS });
};

/** The offsets of an answer by partition. */
export const offsetsOf = (responses: OffsetList, topic: string): Map<number, number> =>
  new Map(
    responses
      .filter((entry) => entry.topic === topic)
      .flatMap(({ partitions }) => partitions.map(({ partition, offset }) => [partition, toOffset(offset)])),
  );

/** Asks a broker for the partitions of a topic. Rejects with a retriable error when none answers. */
export const fetchLeaders = async (cluster: OpenCluster, topic: string): Promise<Leaders> => {
  const metadata = await cluster.metadata({ topics: [topic] });
  const found = metadata?.topicMetadata.find((entry) => entry.topic === topic)?.partitionMetadata;
  if (found === undefined) throw new kafkajs.KafkaJSError("no broker gives the partitions");
  return new Map(
    found
      .map(({ partitionId, leader }): [number, number] => [partitionId, leader])
      .sort(([one], [other]) => one - other),
  );
};

/**
 * The offset of each partition for `timestamp`: a time in milliseconds, `LATEST` or `EARLIEST`; -1 where all
 * messages are earlier. Rejects when the answer lacks a partition.
 */
export const listOffsets = async (
  cluster: OpenCluster,
  topic: string,
  leaders: Leaders,
  timestamp: number,
  isolationLevel: number,
): Promise<Map<number, number>> => {
  const partitionsByLeader = Map.groupBy(leaders.keys(), (partition) => leaders.get(partition) ?? -1);
  const answers = await Promise.all(
    Array.from(partitionsByLeader, async ([nodeId, partitions]) => {
      const broker = await cluster.findBroker({ nodeId });
      return broker.listOffsets({
        isolationLevel,
        topics: [{ topic, partitions: partitions.map((partition) => ({ partition, timestamp })) }],
      });
    }),
  );
  const offsets = new Map(answers.flatMap(({ responses }) => [...offsetsOf(responses, topic)]));
  for (const partition of leaders.keys()) {
    if (!offsets.has(partition)) throw new kafkajs.KafkaJSError("a partition is left out");
  }
  return offsets;
};

/**
 * The id of a topic by each leader; null: brokers give none. Rejects with a retriable error when they
 * disagree.
 */
export const fetchTopicId = async (
  cluster: OpenCluster,
  topic: string,
  leaders: Leaders,
): Promise<string | null> => {
  const ids = await Promise.all(
    Array.from(new Set(leaders.values()), async (nodeId) =>
      (await askTopicIds(await cluster.findBroker({ nodeId }), [topic])).get(topic),
    ),
  );
  const [id = null, ...others] = new Set(ids);
  if (others.length > 0) throw new kafkajs.KafkaJSError(`the brokers give different ids of ${topic}`);
  return id;
};
