import type { Micros } from "@conversation-export/domain";

/** Writes under way in this process, from the decision that a record is not suppressed until it is stored. */
export type PendingWrites = {
  /**
   * Runs `work`, which decides what is suppressed and writes the rest. `uploadedAt`: no row that it writes
   * has an earlier instant of upload; null when the writes within it are run by themselves. Also rejects when
   * the notes about suppressed records cannot be stored: then the work must be repeated.
   */
  run<T>(uploadedAt: Micros | null, work: () => Promise<T>): Promise<T>;
  /** Resolves when all writes that run now have ended. */
  settled(): Promise<void>;
  /** The oldest instant of upload among the writes under way; null when there are none. */
  oldestUpload(): Micros | null;
};

/** @param deps.foundStored stores the notes about suppressed records */
export const createPendingWrites = (
  deps: { readonly foundStored?: () => Promise<void> } = {},
): PendingWrites => {
  const running = new Map<Promise<unknown>, Micros | null>();
  return {
    run: async (uploadedAt, work) => {
      const written = work().then(async (result) => {
        await deps.foundStored?.();
        return result;
      });
      running.set(written, uploadedAt);
      try {
        return await written;
      } finally {
        running.delete(written);
      }
    },
    settled: async () => {
      await Promise.allSettled(running.keys());
    },
    oldestUpload: () => {
      const instants = [...running.values()].filter((at) => at !== null);
      return instants.length === 0 ? null : Math.min(...instants);
    },
  };
};
