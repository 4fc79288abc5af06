import type { PartitionProgress } from "@conversation-export/bus";
import type { Micros } from "@conversation-export/domain";

/** All events that reached the topic before `instant` lie before `ends`, which has every partition. */
export type Note = { readonly instant: Micros; readonly ends: ReadonlyMap<number, number> };

/** `notes` from old to new; `watermark` is undefined while no note is reached. */
export type Advance = { readonly notes: readonly Note[]; readonly watermark: Micros | undefined };

const MAX_NOTES = 500;

const isReached = ({ ends }: Note, progress: readonly PartitionProgress[]): boolean =>
  progress.every(({ partition, start, committed }) => {
    const end = ends.get(partition);
    // What retention has deleted can be waited for in vain.
    return end !== undefined && Math.max(start, committed ?? start) >= end;
  });

const hasEndsOf = (one: Note, other: Note): boolean =>
  [...one.ends].every(([partition, end]) => other.ends.get(partition) === end);

/** Leaves out the note whose neighbours are closest, so that those of hours ago lie as close as the latest. */
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
 * Takes down how far a topic reaches and finds the newest note that a group has passed.
 * @param instant of a clock that was read before the topic's ends were asked for
 */
export const advance = (
  notes: readonly Note[],
  instant: Micros,
  progress: readonly PartitionProgress[],
  maxNotes: number = MAX_NOTES,
): Advance => {
  const note: Note = { instant, ends: new Map(progress.map(({ partition, end }) => [partition, end])) };
  // A note of later than now was made by a clock that was wrong; one of other partitions does not cover all.
  const valid = notes.filter((one) => one.instant < instant && one.ends.size === note.ends.size);
  const last = valid.at(-1);
  const kept = last !== undefined && hasEndsOf(last, note) ? valid.slice(0, -1) : valid;
  const all = [...kept, note];
  // A topic without partitions is not yet there for this broker.
  const reached = progress.length === 0 ? -1 : all.findLastIndex((one) => isReached(one, progress));
  const left = all.slice(reached + 1);
  return { notes: left.length > maxNotes ? thin(left) : left, watermark: all[reached]?.instant };
};
