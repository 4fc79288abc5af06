import type { KeyUses } from "@conversation-export/queue";
import type { Logger } from "@conversation-export/runtime";

/** Keeps when keys were used last, so that unused ones are found. */
export type UsedKeys = {
  /** Notes in memory that a key was used now. */
  use(keyId: string): void;
  /** Stores what was noted since it was called last; what cannot be stored is kept. Never rejects. */
  save(): Promise<void>;
};

/** @param deps.now ms since the epoch */
export const createUsedKeys = (deps: {
  readonly store: Pick<KeyUses, "note">;
  readonly now: () => number;
  readonly log: Logger;
}): UsedKeys => {
  const { store, now, log } = deps;
  let used = new Map<string, number>();
  return {
    use: (keyId) => void used.set(keyId, now()),
    save: async () => {
      const saved = used;
      used = new Map();
      try {
        await store.note(saved);
      } catch (error) {
        log.debug({ error: String(error) }, "uses of keys are not stored");
        used = new Map([...saved, ...used]);
      }
    },
  };
};
