import type { Logger } from "@conversation-export/runtime";
import { LRUCache } from "lru-cache";

/** Keys that a look-up found before they were loaded, or that are more than are loaded. */
const MAX_FOUND = 10_000;

/** Hashes of valid keys: no failures of others bound their look-ups. */
export type KnownKeys = {
  has(hash: string): boolean;
  add(hash: string): void;
  /** A look-up has found the key no longer valid. */
  remove(hash: string): void;
  /** Loads the valid keys anew; what was loaded before stays when that fails. Never rejects. */
  refresh(): Promise<void>;
};

/** @param deps.load the hashes of the valid keys, a bounded number of them */
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
