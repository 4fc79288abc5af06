export type BufferBudget = ReturnType<typeof createBufferBudget>;

/** Calls `onRoom` at half of `maxBytes` after the budget was full. */
export const createBufferBudget = (deps: { maxBytes: number; onRoom: () => void }) => {
  let used = 0;
  let wasFull = false;
  return {
    add(bytes: number): void {
      used += bytes;
    },
    release(bytes: number): void {
      used -= bytes;
      if (wasFull && used <= deps.maxBytes / 2) {
        wasFull = false;
        deps.onRoom();
      }
    },
    isFull(): boolean {
      const full = used >= deps.maxBytes;
      if (full) wasFull = true;
      return full;
    },
    used: (): number => used,
  };
};
