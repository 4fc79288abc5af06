import type { Logger } from "@conversation-export/runtime";
import { LRUCache } from "lru-cache";

const MAX_FOUND = 10_000;

/** Look-ups of these are not limited by others' failures. */
export type KnownKeys = {
  has(hash: string): boolean;
  add(hash: string): void;
  remove(hash: string): void;
  /** Keeps the loaded keys when loading fails. Never rejects. */
  refresh(): Promise<void>;
};

export const createKnownKeys = (deps: {
  readonly load: () => Promise<readonly string[]>;
  readonly log: Logger;
  readonly onLoad?: (result: "loaded" | "failed") => void;
}): KnownKeys => {
  const { load, log, onLoad } = deps;
  const found = new LRUCache<string, true>({ max: MAX_FOUND });
  let loaded = new Set<string>();
  let failing = false;
  return {
    has: (hash) => loaded.has(hash) || found.has(hash),
    add: (hash) => void found.set(hash, true),
    remove: (hash) => {
      loaded.delete(hash);
      found.delete(hash);
    },
    refresh: async () => {
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
