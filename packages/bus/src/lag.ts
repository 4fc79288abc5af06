/**
 * Messages between a group's position and the end of a partition; null when it is unknown, which is not zero.
 * A negative position (nothing committed, or the literals -1 and -2 that tools commit) reads from the start,
 * as does one that retention has deleted.
 */
export const lagOf = (partition: {
  start: number | null;
  end: number | null;
  position: number | null;
}): number | null => {
  const { start, end, position } = partition;
  if (start === null || end === null || start < 0 || end < 0) return null;
  return Math.max(0, end - Math.max(start, position ?? start));
};
