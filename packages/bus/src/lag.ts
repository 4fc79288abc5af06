/** null: unknown; a deleted position counts from the start. */
export const lagOf = (partition: {
  start: number | null;
  end: number | null;
  position: number | null;
}): number | null => {
  const { start, end, position } = partition;
  if (start === null || end === null || start < 0 || end < 0) return null;
  return Math.max(0, end - Math.max(start, position ?? start));
};
