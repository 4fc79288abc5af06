const FIRST_SLICE = 64;
const LARGEST_SLICE = 4096;
/** Bounds the change after one slice that was slow, as by a garbage collection, or fast. */
const LARGEST_STEP = 4;

/** Chooses the number of messages that fit into the time for which the event loop may be held. */
export type SliceSizer = {
  size(): number;
  /** Notes the time that the last slice of `count` messages took. */
  took(count: number, ms: number): void;
};

/** @param sliceMs the time that a slice should take */
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
