import {
  createCluster,
  EARLIEST,
  fetchLeaders,
  LATEST,
  listOffsets,
  offsetsOf,
  READ_UNCOMMITTED,
} from "./kafkajs/cluster.ts";
import { type Connection, connectTo, createKafka } from "./kafkajs/connection.ts";
import { busError } from "./kafkajs/errors.ts";

/**
 * How far a group is with one partition. `end` lies behind the last message that all replicas in sync have,
 * open transactions included. `committed` is null where nothing usable is committed, as when the topic was
 * made anew.
 */
export type PartitionProgress = { partition: number; start: number; end: number; committed: number | null };

/** Asks the brokers each time, for the partitions too: no part of an answer is older than the question. */
export type GroupProgress = {
  /** Waits for the brokers as long as it takes; rejects when waiting cannot help, and after `stop`. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Every partition of the topic, by number.
   * @throws ServiceError `group_progress`
   */
  fetch(topic: string): Promise<PartitionProgress[]>;
};

export const createGroupProgress = (deps: Connection & { groupId: string }): GroupProgress => {
  const { groupId, log } = deps;
  const abort = new AbortController();
  const cluster = createCluster(createKafka(deps));

  const fetch = async (topic: string): Promise<PartitionProgress[]> => {
    const leaders = await fetchLeaders(cluster, topic);
    const numbers = [...leaders.keys()];
    // Commits are asked for before ends, so a commit beyond the end belongs to a deleted topic of the same
    // name.
    const coordinator = await cluster.findGroupCoordinator({ groupId });
    const answer = await coordinator.offsetFetch({
      groupId,
      topics: [{ topic, partitions: numbers.map((partition) => ({ partition })) }],
    });
    const committed = offsetsOf(answer.responses, topic);
    const starts = await listOffsets(cluster, topic, leaders, EARLIEST, READ_UNCOMMITTED);
    const ends = await listOffsets(cluster, topic, leaders, LATEST, READ_UNCOMMITTED);
    return numbers.map((partition) => {
      const [start, end] = [starts.get(partition) ?? 0, ends.get(partition) ?? 0];
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
