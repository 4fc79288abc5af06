import type { SuppressionRow } from "./suppression-key.ts";

/** Ids that this process has found to belong to what was erased, until they are stored. */
export type FoundRows = {
  add(row: SuppressionRow): void;
  /** The rows that are not stored yet. */
  waiting(): readonly SuppressionRow[];
  /** true when rows wait and no INSERT of them is running. */
  areIdle(): boolean;
  /**
   * Resolves when all rows added before the call are stored.
   * @throws when ClickHouse does not take them; they are kept
   */
  readonly stored: () => Promise<void>;
};

export const createFoundRows = (store: {
  readonly add: (rows: readonly SuppressionRow[]) => Promise<void>;
}): FoundRows => {
  const waiting: SuppressionRow[] = [];
  let storedCount = 0;
  let storing: Promise<void> | undefined;

  const storeWaiting = async (): Promise<void> => {
    const rows = waiting.slice();
    await store.add(rows);
    waiting.splice(0, rows.length);
    storedCount += rows.length;
  };

  return {
    add: (row) => waiting.push(row),
    waiting: () => waiting,
    areIdle: () => waiting.length > 0 && storing === undefined,
    stored: async () => {
      const upTo = storedCount + waiting.length;
      while (storedCount < upTo) {
        storing ??= storeWaiting().finally(() => {
          storing = undefined;
        });
        await storing;
      }
    },
  };
};
