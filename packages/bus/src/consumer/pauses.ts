import { byTopic } from "../by-topic.ts";
import type { TopicPartition } from "../message.ts";
import type { Membership } from "./membership.ts";

type Topics = { topic: string; partitions: number[] }[];

export type Pauses = ReturnType<typeof createPauses>;

const keyOf = ({ topic, partition }: TopicPartition): string => `${partition} ${topic}`;

const topicsOf = (partitions: readonly TopicPartition[]): Topics =>
  byTopic(partitions, ({ partition }) => partition);

/** kafkajs keeps pauses over a join, so its end lifts them all. */
export const createPauses = (deps: {
  readonly membership: Membership;
  readonly pause: (topics: Topics) => void;
  readonly resume: (topics: Topics) => void;
}) => {
  const { membership } = deps;
  const paused = new Map<string, TopicPartition>();

  const pause = (partitions: readonly TopicPartition[]): void => {
    if (membership.phase !== "joined" || partitions.length === 0) return;
    for (const where of partitions) paused.set(keyOf(where), where);
    deps.pause(topicsOf(partitions));
  };
  const resume = (partitions: readonly TopicPartition[]): void => {
    // Then the end of the join resumes it.
    if (membership.phase !== "joined") return;
    const known = partitions.filter((where) => paused.delete(keyOf(where)));
    if (known.length > 0) deps.resume(topicsOf(known));
  };
  return {
    pause,
    resume,
    pauseFor: (ms: number, where: TopicPartition): void => {
      const { epoch } = membership;
      pause([where]);
      const timer = setTimeout(() => {
        if (membership.epoch === epoch) resume([where]);
      }, ms);
      timer.unref();
    },
    isPaused: (where: TopicPartition): boolean => paused.has(keyOf(where)),
    count: (): number => paused.size,
    lift: (): void => {
      if (paused.size > 0) deps.resume(topicsOf([...paused.values()]));
      paused.clear();
    },
  };
};
