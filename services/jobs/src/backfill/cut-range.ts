/** Below a job's largest number of parts, so that several partitions fit. */
const MAX_PARTS = 5_000;

/** Pieces may be larger than `size`. */
export function cutRanges<Range extends { readonly from: number; readonly to: number }>(
  ranges: readonly Range[],
  size: number,
): Range[] {
  const total = ranges.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
  const step = Math.max(size, Math.ceil(total / MAX_PARTS));
  return ranges.flatMap((range) => {
    const pieces: Range[] = [];
    for (let from = range.from; from < range.to; from += step) {
      pieces.push({ ...range, from, to: Math.min(range.to, from + step) });
    }
    return pieces;
  });
}
