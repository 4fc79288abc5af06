import type { KeyUses } from "@conversation-export/queue";
import type { Logger } from "@conversation-export/runtime";

export type UsedKeys = {
  use(keyId: string): void;
  /** Keeps what cannot be stored. Never rejects. */
  save(): Promise<void>;
};

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
