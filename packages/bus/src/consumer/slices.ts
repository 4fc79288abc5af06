const FIRST_SLICE = 64;
const LARGEST_SLICE = 4096;
/** One slice may be slow because of a garbage collection. */
const LARGEST_STEP = 4;

export type SliceSizer = {
  size(): number;
  took(count: number, ms: number): void;
};

export const createSliceSizer = (sliceMs: number): SliceSizer => {
  let size = FIRST_SLICE;
  return {
    size: () => size,
    took: (count, ms) => {
      if (count === 0) return;
      const fitting = Math.floor((count / Math.max(ms, 0.01)) * sliceMs);
      const smallest = Math.ceil(size / LARGEST_STEP);
      size = Math.min(LARGEST_SLICE, size * LARGEST_STEP, Math.max(1, smallest, fitting));
    },
  };
};
