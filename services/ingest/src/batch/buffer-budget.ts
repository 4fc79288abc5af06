export type BufferBudget = {
  add(bytes: number): void;
  release(bytes: number): void;
  isFull(): boolean;
  used(): number;
};

/** Calls `onRoom` at half of `maxBytes` after the budget was full. */
export const createBufferBudget = (deps: { maxBytes: number; onRoom: () => void }): BufferBudget => {
  let used = 0;
  let wasFull = false;
  return {
    add(bytes) {
      used += bytes;
    },
    release(bytes) {
      used -= bytes;
      if (wasFull && used <= deps.maxBytes / 2) {
        wasFull = false;
        deps.onRoom();
      }
    },
    isFull() {
      const full = used >= deps.maxBytes;
      if (full) wasFull = true;
      return full;
    },
    used: () => used,
  };
};
