import type { PartitionProgress, TopicProgress } from "@conversation-export/bus";
import type { Micros } from "@conversation-export/domain";

/** Every event that all in-sync replicas had before `instant` lies before `ends`. */
export type Note = {
  readonly instant: Micros;
  readonly topicId: string | null;
  readonly ends: ReadonlyMap<number, number>;
};

/** Oldest first; undefined: the group has passed none. */
export type Advance = { readonly notes: readonly Note[]; readonly watermark: Micros | undefined };

const MAX_NOTES = 500;

const isReached = ({ ends }: Note, progress: readonly PartitionProgress[]): boolean =>
  progress.every(({ partition, start, committed }) => {
    const end = ends.get(partition);
    // Records deleted by the topic's retention count as read.
    return end !== undefined && Math.max(start, committed ?? start) >= end;
  });

const hasEndsOf = (one: Note, other: Note): boolean =>
  [...one.ends].every(([partition, end]) => other.ends.get(partition) === end);

/** Keeps the notes evenly spread over time. */
const thin = (notes: readonly Note[]): Note[] => {
  let closest = 1;
  let smallest = Infinity;
  for (let index = 1; index < notes.length - 1; index += 1) {
    const gap = (notes[index + 1]?.instant ?? 0) - (notes[index - 1]?.instant ?? 0);
    if (gap >= smallest) continue;
    smallest = gap;
    closest = index;
  }
  return notes.toSpliced(closest, 1);
};

/** `instant` must be taken before the topic's ends are read. */
export const advance = (
  notes: readonly Note[],
  instant: Micros,
  { topicId, partitions: progress }: TopicProgress,
  maxNotes: number = MAX_NOTES,
): Advance => {
  const ends = new Map(progress.map(({ partition, end }) => [partition, end]));
  const note: Note = { instant, topicId, ends };
  // Notes of a wrong clock, other partitions or a deleted topic do not cover this topic.
  const valid = notes.filter(
    (one) => one.instant < instant && one.topicId === topicId && one.ends.size === ends.size,
  );
  const last = valid.at(-1);
  const kept = last !== undefined && hasEndsOf(last, note) ? valid.slice(0, -1) : valid;
  const all = [...kept, note];
  // The broker may not know the topic yet.
  const reached = progress.length === 0 ? -1 : all.findLastIndex((one) => isReached(one, progress));
  const left = all.slice(reached + 1);
  return { notes: left.length > maxNotes ? thin(left) : left, watermark: all[reached]?.instant };
};
