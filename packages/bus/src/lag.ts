/**
 * Messages between a group's position and the end of a partition; null when that is unknown. A group reads
 * from the start when its position is negative (nothing committed, or the literals -1 and -2 that tools
 * commit) or deleted by retention.
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
