import kafkajs, { type Broker, type Cluster, type Kafka } from "kafkajs";
import { toOffset } from "../records/offset.ts";
import { METADATA_MAX_AGE_MS } from "./connection.ts";
import type { FetchedPartition } from "./fetch-response.ts";
import { privateOf } from "./internals.ts";
import type { PartitionBounds } from "../message.ts";
import { askTopicIds } from "../topics/topic-ids.ts";

export const LATEST = -1;
const EARLIEST = -2;

export const READ_UNCOMMITTED = 0;
export const READ_COMMITTED = 1;

type ListOffsets = {
  isolationLevel: number;
  topics: { topic: string; partitions: { partition: number; timestamp: number }[] }[];
};
type OffsetList = {
  topic: string;
  partitions: { partition: number; offset: string; metadata?: string | null }[];
}[];

type Fetch = {
  isolationLevel: number;
  maxWaitTime: number;
  minBytes: number;
  maxBytes: number;
  topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
};

/** kafkajs' types leave these out. */
export type OpenBroker = Omit<Broker, "offsetFetch" | "offsetCommit" | "fetch"> & {
  listOffsets(request: ListOffsets): Promise<{ responses: OffsetList }>;
  offsetFetch(request: {
    groupId: string;
    topics: { topic: string; partitions: { partition: number }[] }[];
  }): Promise<{ responses: OffsetList }>;
  /** Without a member the group must have none. */
  offsetCommit(request: {
    groupId: string;
    groupGenerationId: number;
    memberId: string;
    topics: { topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[];
  }): Promise<unknown>;
  /** No responses: the broker throttles. */
  fetch(
    request: Fetch,
  ): Promise<{ responses: { topicName: string; partitions: readonly FetchedPartition[] }[] }>;
};
export type OpenCluster = Omit<Cluster, "metadata" | "findBroker" | "findGroupCoordinator"> & {
  /** undefined: no broker answers. */
  metadata(request: {
    topics: string[];
  }): Promise<
    | { topicMetadata: { topic: string; partitionMetadata: { partitionId: number; leader: number }[] }[] }
    | undefined
  >;
  findBroker(node: { nodeId: number }): Promise<OpenBroker>;
  findGroupCoordinator(group: { groupId: string }): Promise<OpenBroker>;
};

type Leaders = ReadonlyMap<number, number>;

/** The admin client never refreshes metadata and ends partitions at the first open transaction. */
export const createCluster = (kafka: Kafka): OpenCluster => {
  const create = privateOf(kafka, "private:Kafka:createCluster") as (options: object) => OpenCluster;
  return create.call(kafka, { allowAutoTopicCreation: false, metadataMaxAge: METADATA_MAX_AGE_MS });
};

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

/** `timestamp`: ms, `LATEST` or `EARLIEST`. Offset -1: all messages are earlier. */
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
  const partitions = answers.flatMap(({ responses }) => responses.flatMap((one) => one.partitions));
  const offsets = new Map(partitions.map(({ partition, offset }) => [partition, toOffset(offset)]));
  for (const partition of leaders.keys()) {
    if (!offsets.has(partition)) throw new kafkajs.KafkaJSError("a partition is left out");
  }
  return offsets;
};

export const fetchBounds = async (
  cluster: OpenCluster,
  topic: string,
  leaders: Leaders,
  isolationLevel: number,
): Promise<PartitionBounds[]> => {
  const starts = await listOffsets(cluster, topic, leaders, EARLIEST, isolationLevel);
  const ends = await listOffsets(cluster, topic, leaders, LATEST, isolationLevel);
  return Array.from(leaders.keys(), (partition) => ({
    partition,
    start: starts.get(partition) ?? 0,
    end: ends.get(partition) ?? 0,
  }));
};

/** null: none; rejects when brokers disagree. */
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
