import type { Micros } from "@conversation-export/domain";

/** What this process is writing: from the decision that a record is not suppressed until it is stored. */
export type PendingWrites = {
  /**
   * Runs `work`, which decides what is suppressed and writes the rest with the instant of upload `uploadedAt`. Rejects
   * also when what was noted of the suppressed cannot be stored: the work has to be repeated.
   */
  run<T>(uploadedAt: Micros, work: () => Promise<T>): Promise<T>;
  /** Resolves when everything has ended that was running at the call. */
  settled(): Promise<void>;
  /** The oldest instant of upload that is being written; null when nothing is. */
  oldestUpload(): Micros | null;
};

/** `foundStored`: stores what was noted of the suppressed records. */
export const createPendingWrites = (
  deps: { readonly foundStored?: () => Promise<void> } = {},
): PendingWrites => {
  const running = new Map<Promise<unknown>, Micros>();
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
    oldestUpload: () => (running.size === 0 ? null : Math.min(...running.values())),
  };
};
