import type { Logger } from "@conversation-export/runtime";
import { LRUCache } from "lru-cache";

const MAX_FOUND = 10_000;

export type KnownKeys = ReturnType<typeof createKnownKeys>;

/** Look-ups of these are not limited by others' failures. */
export const createKnownKeys = (deps: {
  readonly load: () => Promise<readonly string[]>;
  readonly log: Logger;
  readonly onLoad?: (result: "loaded" | "failed") => void;
}) => {
  const { load, log, onLoad } = deps;
  const found = new LRUCache<string, true>({ max: MAX_FOUND });
  let loaded = new Set<string>();
  let failing = false;
  return {
    has: (hash: string): boolean => loaded.has(hash) || found.has(hash),
    add: (hash: string): void => void found.set(hash, true),
    remove: (hash: string): void => {
      loaded.delete(hash);
      found.delete(hash);
    },
    /** Keeps the loaded keys when loading fails. Never rejects. */
    refresh: async (): Promise<void> => {
      try {
        loaded = new Set(await load());
        failing = false;
        onLoad?.("loaded");
      } catch (error) {
        // Once, not every few seconds.
        if (!failing) log.warn({ err: error }, "loading valid keys failed");
        failing = true;
        onLoad?.("failed");
      }
    },
  };
};
