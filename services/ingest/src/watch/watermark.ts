import type { PartitionProgress, TopicProgress } from "@conversation-export/bus";
import type { Micros } from "@conversation-export/domain";

/**
 * All events that reached the topic, which is when all replicas in sync had them, before `instant` lie before
 * `ends`, the end offset of every partition.
 */
export type Note = {
  readonly instant: Micros;
  readonly topicId: string | null;
  readonly ends: ReadonlyMap<number, number>;
};

/** `notes`: oldest first. `watermark`: undefined while the group has passed no note. */
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

/** Drops the note with the closest neighbours, so that the notes stay evenly spread over time. */
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

/**
 * Adds a note of the topic's current ends and finds the newest note that the group has passed.
 *
 * @param instant read from a clock before the topic's ends were asked for
 */
export const advance = (
  notes: readonly Note[],
  instant: Micros,
  { topicId, partitions: progress }: TopicProgress,
  maxNotes: number = MAX_NOTES,
): Advance => {
  const ends = new Map(progress.map(({ partition, end }) => [partition, end]));
  const note: Note = { instant, topicId, ends };
  // A note from the future is from a wrong clock; one with other partitions, or of a topic that was deleted, does not
  // cover the topic.
  const valid = notes.filter(
    (one) => one.instant < instant && one.topicId === topicId && one.ends.size === ends.size,
  );
  const last = valid.at(-1);
  const kept = last !== undefined && hasEndsOf(last, note) ? valid.slice(0, -1) : valid;
  const all = [...kept, note];
  // No partitions: the broker does not know the topic yet.
  const reached = progress.length === 0 ? -1 : all.findLastIndex((one) => isReached(one, progress));
  const left = all.slice(reached + 1);
  return { notes: left.length > maxNotes ? thin(left) : left, watermark: all[reached]?.instant };
};
