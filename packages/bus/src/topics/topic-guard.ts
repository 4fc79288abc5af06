import { setTimeout as sleep } from "node:timers/promises";
import kafkajs, { type Cluster } from "kafkajs";
import { isOfFormerTopic, stampOf } from "./topic-stamp.ts";
import type { OpenBroker } from "../kafkajs/cluster.ts";
import type { TopicPartition } from "../message.ts";
import { askTopicIds, type TopicIds } from "./topic-ids.ts";
import { servedLogs, type TopicLog } from "./topic-logs.ts";

/** kafkajs' types leave these out. */
type GuardedCluster = Omit<Cluster, "findBroker"> & {
  findBroker(node: { nodeId: number }): Promise<GuardedBroker>;
};
type GuardedBroker = { readonly nodeId: number } & Pick<OpenBroker, "offsetFetch" | "listOffsets" | "fetch">;
type Topics = readonly {
  readonly topic: string;
  readonly partitions: readonly { readonly partition: number }[];
}[];

/** A broker may not know the new topic yet. */
const BEHIND_PAUSE_MS = 250;

/** A new topic of the same name has other messages at the same offsets (docs/decisions/0031). */
export type TopicGuard = {
  attach(cluster: Cluster): void;
  begin(): void;
  /** undefined: nothing was reached since the last join. */
  stampOf(topic: string): string | null | undefined;
  isRecent(batch: object): boolean;
  /** After a change the topic is read from its beginning. */
  look(): Promise<void>;
};

/** kafkajs rejoins on an error of this type. */
export const rejoinError = (message: string): Error =>
  Object.assign(new kafkajs.KafkaJSError(message, { retriable: false }), { type: "REBALANCE_IN_PROGRESS" });

const placesOf = (topics: Topics): TopicPartition[] =>
  topics.flatMap(({ topic, partitions }) => partitions.map(({ partition }) => ({ topic, partition })));

export const createTopicGuard = (
  onFormer: (topic: string, partitions: readonly number[]) => void,
  ask: {
    ids(broker: GuardedBroker, topics: readonly string[]): Promise<TopicIds>;
    served(broker: GuardedBroker, logs: readonly TopicLog[]): Promise<readonly TopicLog[] | undefined>;
  } = { ids: askTopicIds, served: servedLogs },
): TopicGuard => {
  let ids = new Map<string, string | null>();
  let isStale = false;
  /** Partitions that a broker serves from the present topics, since the last join. */
  let proven = new Set<string>();
  const fetchedSince = new WeakMap<object, typeof ids>();
  let findBroker: GuardedCluster["findBroker"] | undefined;
  let coordinator: number | undefined;

  const settle = (found: TopicIds): void => {
    for (const [topic, id] of found) {
      const known = ids.get(topic);
      if (known === undefined) ids.set(topic, id);
      // During an upgrade not all brokers give ids.
      else if (known !== null && id !== null && known !== id) isStale = true;
    }
  };

  const unlessStale = (): void => {
    if (isStale) throw rejoinError("a topic was deleted and created anew");
  };

  /** A broker may still read a deleted topic's log; the answer knows of which partitions it does not. */
  const requireLogs = async (
    broker: GuardedBroker,
    topics: Topics,
  ): Promise<(where: TopicPartition) => boolean> => {
    const [since, known] = [ids, proven];
    const keyOf = ({ topic, partition }: TopicPartition): string => `${broker.nodeId}/${partition}/${topic}`;
    const asked = placesOf(topics);
    const logs = asked.flatMap((where) => {
      const topicId = since.get(where.topic);
      return topicId == null ? [] : [{ ...where, topicId }];
    });
    const unproven = logs.filter((one) => !known.has(keyOf(one)));
    if (unproven.length > 0) {
      const served = await ask.served(broker, unproven);
      if (served === undefined) {
        if (since === ids) isStale = true;
        await sleep(BEHIND_PAUSE_MS);
        throw rejoinError("a broker still reads from a topic that was deleted and created anew");
      }
      for (const one of served) known.add(keyOf(one));
    }
    const usable = new Set(
      asked.filter((where) => since.get(where.topic) === null || known.has(keyOf(where))).map(keyOf),
    );
    return (where) => usable.has(keyOf(where));
  };

  const guards = new WeakSet<GuardedBroker>();
  const guarded = (broker: GuardedBroker): GuardedBroker => {
    const { offsetFetch, listOffsets, fetch } = broker;
    if (guards.has(broker)) return broker;
    guards.add(broker);
    broker.listOffsets = async (request) => {
      const since = ids;
      const isKnown = await requireLogs(broker, request.topics);
      if (placesOf(request.topics).some((where) => since.get(where.topic) != null && !isKnown(where)))
        throw new kafkajs.KafkaJSError("a broker cannot read a partition");
      return listOffsets.call(broker, request);
    };
    broker.fetch = async (request) => {
      const since = ids;
      const isKnown = await requireLogs(broker, request.topics);
      const answer = await fetch.call(broker, request);
      for (const { topicName: topic, partitions } of answer.responses)
        for (const { partition, messages } of partitions)
          if (isKnown({ topic, partition })) for (const batch of messages) fetchedSince.set(batch, since);
      return answer;
    };
    broker.offsetFetch = async (request) => {
      coordinator = broker.nodeId;
      const answer = await offsetFetch.call(broker, request);
      // After the offsets, so that none can belong to a later topic.
      settle(
        await ask.ids(
          broker,
          request.topics.map(({ topic }) => topic),
        ),
      );
      unlessStale();
      const responses = answer.responses.map(({ topic, partitions }) => {
        const former = partitions.filter(({ metadata }) => isOfFormerTopic(metadata, ids.get(topic) ?? null));
        const numbers = former.map(({ partition }) => partition);
        if (numbers.length > 0) onFormer(topic, numbers);
        // As if nothing was committed.
        const usable = partitions.map((one) => (former.includes(one) ? { ...one, offset: "-1" } : one));
        return { topic, partitions: usable };
      });
      return { ...answer, responses };
    };
    return broker;
  };

  return {
    attach: (cluster) => {
      const open = cluster as unknown as GuardedCluster;
      const find = open.findBroker.bind(open);
      findBroker = find;
      open.findBroker = async (node) => {
        // kafkajs looks for the broker before each fetch.
        unlessStale();
        return guarded(await find(node));
      };
    },
    begin: () => {
      ids = new Map();
      isStale = false;
      proven = new Set();
    },
    stampOf: (topic) => {
      const id = ids.get(topic);
      return id === undefined ? undefined : stampOf(id);
    },
    isRecent: (batch) => fetchedSince.get(batch) === ids,
    look: async () => {
      const known = ids;
      const topics = [...known].flatMap(([topic, id]) => (id === null ? [] : [topic]));
      if (topics.length === 0 || findBroker === undefined || coordinator === undefined) return;
      const found = await ask.ids(await findBroker({ nodeId: coordinator }), topics);
      // A join in the meantime asks itself.
      if (known === ids) settle(found);
    },
  };
};
