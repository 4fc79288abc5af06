const FIRST_SLICE = 64;
const LARGEST_SLICE = 4096;
/** One slice may be slow because of a garbage collection. */
const LARGEST_STEP = 4;

export const createSliceSizer = (sliceMs: number) => {
  let size = FIRST_SLICE;
  return {
    size: (): number => size,
    took: (count: number, ms: number): void => {
      if (count === 0) return;
      const fitting = Math.floor((count / Math.max(ms, 0.01)) * sliceMs);
      const smallest = Math.ceil(size / LARGEST_STEP);
      size = Math.min(LARGEST_SLICE, size * LARGEST_STEP, Math.max(1, smallest, fitting));
    },
  };
};
