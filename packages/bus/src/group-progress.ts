import kafkajs, { type Broker, type Cluster, type Kafka } from "kafkajs";
import { busError, type Connection, connectTo, createKafka } from "./connection.ts";
import { toOffset } from "./message.ts";

/**
 * How far a group is with one partition. `end` is the next offset to be written, open transactions included.
 * `committed` is null where nothing usable is committed, as when the topic was made anew.
 */
export type PartitionProgress = { partition: number; start: number; end: number; committed: number | null };

/** Asks the brokers each time, for the partitions as well: nothing of an answer is older than the question. */
export type GroupProgress = {
  /** Waits for the brokers as long as it takes; rejects on what cannot pass and after `stop`. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Every partition of the topic, by number. Throws ServiceError `group_progress`. */
  fetch(topic: string): Promise<PartitionProgress[]>;
};

type ListOffsets = {
  isolationLevel: number;
  topics: { topic: string; partitions: { partition: number; timestamp: number }[] }[];
};
type OffsetList = { topic: string; partitions: { partition: number; offset: string }[] }[];

/** The parts of kafkajs' own client that it keeps out of its types. */
type OpenBroker = Omit<Broker, "offsetFetch"> & {
  listOffsets(request: ListOffsets): Promise<{ responses: OffsetList }>;
  offsetFetch(request: {
    groupId: string;
    topics: { topic: string; partitions: { partition: number }[] }[];
  }): Promise<{ responses: OffsetList }>;
};
type OpenCluster = Omit<Cluster, "metadata" | "findBroker" | "findGroupCoordinator"> & {
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

const LATEST = -1;
const EARLIEST = -2;
const READ_UNCOMMITTED = 0;
const METADATA_MAX_AGE_MS = 10_000;

/**
 * A cluster client of kafkajs. Its admin client will not do: it keeps the first list of partitions and leaders for
 * as long as it lives, and its ends stop before the first open transaction, though messages lie behind it.
 */
const createCluster = (kafka: Kafka): OpenCluster => {
  const members = kafka as unknown as Record<symbol, ((options: object) => OpenCluster) | undefined>;
  const name = Object.getOwnPropertySymbols(members).find(
    ({ description }) => description === "private:Kafka:createCluster",
  );
  const create = name === undefined ? undefined : members[name];
  if (create === undefined) throw new Error("this version of kafkajs has no cluster client where it was");
  return create({ allowAutoTopicCreation: false, metadataMaxAge: METADATA_MAX_AGE_MS });
};

const offsetsOf = (responses: OffsetList, topic: string): Map<number, number> =>
  new Map(
    responses
      .filter((entry) => entry.topic === topic)
      .flatMap(({ partitions }) => partitions.map(({ partition, offset }) => [partition, toOffset(offset)])),
  );

export const createGroupProgress = (deps: Connection & { groupId: string }): GroupProgress => {
  const { groupId, log } = deps;
  const abort = new AbortController();
  const cluster = createCluster(createKafka(deps));

  const fetchOffsets = async (
    topic: string,
    partitionsByLeader: ReadonlyMap<number, readonly number[]>,
    timestamp: number,
  ): Promise<Map<number, number>> => {
    const answers = await Promise.all(
      Array.from(partitionsByLeader, async ([nodeId, partitions]) => {
        const broker = await cluster.findBroker({ nodeId });
        return broker.listOffsets({
          isolationLevel: READ_UNCOMMITTED,
          topics: [{ topic, partitions: partitions.map((partition) => ({ partition, timestamp })) }],
        });
      }),
    );
    return new Map(answers.flatMap(({ responses }) => [...offsetsOf(responses, topic)]));
  };

  const fetch = async (topic: string): Promise<PartitionProgress[]> => {
    const metadata = await cluster.metadata({ topics: [topic] });
    const found = metadata?.topicMetadata.find((entry) => entry.topic === topic)?.partitionMetadata;
    if (found === undefined) throw new kafkajs.KafkaJSError("no broker tells the partitions");
    const numbers = found.map(({ partitionId }) => partitionId).sort((a, b) => a - b);
    const leaders = new Map(found.map(({ partitionId, leader }) => [partitionId, leader]));
    const byLeader = Map.groupBy(numbers, (partition) => leaders.get(partition) ?? -1);
    // Commits before ends: a commit beyond the end then belongs to a topic that is gone.
    const coordinator = await cluster.findGroupCoordinator({ groupId });
    const answer = await coordinator.offsetFetch({
      groupId,
      topics: [{ topic, partitions: numbers.map((partition) => ({ partition })) }],
    });
    const committed = offsetsOf(answer.responses, topic);
    const starts = await fetchOffsets(topic, byLeader, EARLIEST);
    const ends = await fetchOffsets(topic, byLeader, LATEST);
    return numbers.map((partition) => {
      const [start, end] = [starts.get(partition), ends.get(partition)];
      if (start === undefined || end === undefined) throw new kafkajs.KafkaJSError("a partition is left out");
      const position = committed.get(partition) ?? -1;
      return { partition, start, end, committed: position < 0 || position > end ? null : position };
    });
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
        throw busError("group_progress", "the brokers do not tell how far the group is", error);
      }
    },
  };
};
