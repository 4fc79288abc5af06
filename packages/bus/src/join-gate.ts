import kafkajs, { type Cluster, type PartitionAssigner } from "kafkajs";

/** The part of a consumer's cluster that kafkajs keeps out of its types. */
type ConsumerCluster = Cluster & {
  committedOffsets(group: { groupId: string }): Record<string, Record<number, unknown> | undefined>;
};

export type JoinGate = {
  /** Round-robin; being made, it puts the gate into the consumer's cluster. */
  assigner: PartitionAssigner;
  /** The committed offset from which kafkajs began the partition in this generation, as it holds it. */
  committedOffset(topic: string, partition: number): unknown;
};

/**
 * A door before every JoinGroup request. kafkajs rejoins as soon as it hears of a rebalance, and the generation
 * that a drain could commit with is gone. A join begins with the search for the coordinator, so waiting there
 * lets the owner drain first; no public hook comes before the join.
 * @param beforeJoin a rejection ends the join
 */
export const createJoinGate = (deps: { groupId: string; beforeJoin: () => Promise<void> }): JoinGate => {
  let cluster: ConsumerCluster | undefined;
  return {
    assigner: (config) => {
      cluster = config.cluster as ConsumerCluster;
      const find = cluster.findGroupCoordinator.bind(cluster);
      cluster.findGroupCoordinator = async (group) => {
        await deps.beforeJoin();
        return find(group);
      };
      return kafkajs.PartitionAssigners.roundRobin(config);
    },
    committedOffset: (topic, partition) =>
      cluster?.committedOffsets({ groupId: deps.groupId })[topic]?.[partition],
  };
};
