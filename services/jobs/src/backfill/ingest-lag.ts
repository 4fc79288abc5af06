import type { GroupProgress } from "@conversation-export/bus";

/** null when the brokers do not answer. */
export const createIngestLag =
  (deps: {
    readonly progress: Pick<GroupProgress, "fetch">;
    readonly topics: readonly string[];
    readonly connected: (signal: AbortSignal) => Promise<void>;
  }) =>
  async (signal: AbortSignal): Promise<number | null> => {
    await deps.connected(signal);
    try {
      const topics = await Promise.all(deps.topics.map(deps.progress.fetch));
      const partitions = topics.flatMap((topic) => topic.partitions);
      const lags = partitions.map(({ start, end, committed }) => end - Math.max(start, committed ?? start));
      return lags.reduce((sum, lag) => sum + lag, 0);
    } catch {
      signal.throwIfAborted();
      return null;
    }
  };
