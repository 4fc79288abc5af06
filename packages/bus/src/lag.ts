/** A deleted position counts from the start. */
export const lagOf = (partition: { start: number; end: number; position: number | null }): number => {
  const { start, end, position } = partition;
  return Math.max(0, end - Math.max(start, position ?? start));
};
