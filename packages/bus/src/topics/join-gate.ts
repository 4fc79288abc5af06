import kafkajs, { type Cluster, type PartitionAssigner } from "kafkajs";
import type { TopicGuard } from "./topic-guard.ts";

/** The part of a consumer's cluster that kafkajs' types leave out. */
type ConsumerCluster = Cluster & {
  committedOffsets(group: { groupId: string }): Record<string, Record<number, unknown> | undefined>;
};

export type JoinGate = {
  /** Round-robin. When kafkajs creates it, the gate is put into the consumer's cluster. */
  assigner: PartitionAssigner;
  /** The committed offset at which the partition began in this generation, in kafkajs' own form. */
  committedOffset(topic: string, partition: number): unknown;
};

/**
 * Lets the owner drain before every JoinGroup request, by waiting in the search for the coordinator: kafkajs
 * has no hook before the join.
 * @param beforeJoin a rejection ends the join
 */
export const createJoinGate = (deps: {
  groupId: string;
  beforeJoin: () => Promise<void>;
  topics: Pick<TopicGuard, "attach" | "begin">;
}): JoinGate => {
  let cluster: ConsumerCluster | undefined;
  return {
    assigner: (config) => {
      cluster = config.cluster as ConsumerCluster;
      deps.topics.attach(cluster);
      const find = cluster.findGroupCoordinator.bind(cluster);
      cluster.findGroupCoordinator = async (group) => {
        await deps.beforeJoin();
        deps.topics.begin();
        return find(group);
      };
      return kafkajs.PartitionAssigners.roundRobin(config);
    },
    committedOffset: (topic, partition) =>
      cluster?.committedOffsets({ groupId: deps.groupId })[topic]?.[partition],
  };
};
