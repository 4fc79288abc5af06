import kafkajs, { type Cluster, type PartitionAssigner } from "kafkajs";
import type { TopicGuard } from "./topic-guard.ts";

/** kafkajs' types leave it out. */
type ConsumerCluster = Cluster & {
  committedOffsets(group: { groupId: string }): Record<string, Record<number, unknown> | undefined>;
};

export type JoinGate = {
  /** Its creation puts the gate into the consumer's cluster. */
  assigner: PartitionAssigner;
  /** In kafkajs' form. */
  committedOffset(topic: string, partition: number): unknown;
};

/** kafkajs has no hook before a join, so the search for the coordinator waits. */
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
