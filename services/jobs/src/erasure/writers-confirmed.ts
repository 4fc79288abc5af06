import { setTimeout as sleep } from "node:timers/promises";
import type { WriterLeases } from "@conversation-export/queue";
import type { Logger } from "@conversation-export/runtime";
import type { ErasureStore } from "@conversation-export/warehouse";

const ASK_EVERY_MS = 250;
const WARN_EVERY_MS = 30_000;

/** Makes the processes that write follow new suppressions. */
export type WritersConfirmed = {
  /** Lets writers read new suppressions when they renew their leases, and does not wait for them. */
  tell(): Promise<void>;
  /** Announces a new generation of suppressions and waits as `confirmed` does. Resolves to the generation. */
  announce(signal: AbortSignal): Promise<number>;
  /**
   * Resolves when every process that may write has confirmed the generation, or a later one, and all INSERTs
   * that ran before have ended. Resolves to the generation that was confirmed.
   */
  confirmed(generation: number, signal: AbortSignal): Promise<number>;
};

export const createWritersConfirmed = (deps: {
  readonly leases: Pick<WriterLeases, "announce" | "list">;
  readonly store: Pick<ErasureStore, "runningInserts">;
  readonly now: () => number;
  readonly log: Logger;
}): WritersConfirmed => {
  const { leases, store, now, log } = deps;

  /** Waits until `missing` returns an empty list. */
  const untilNone = async (what: string, missing: () => Promise<readonly string[]>, signal: AbortSignal) => {
    let warnAt = now() + WARN_EVERY_MS;
    for (;;) {
      signal.throwIfAborted();
      const names = await missing();
      if (names.length === 0) return;
      if (now() >= warnAt) {
        log.warn({ awaited: names }, `an erasure waits for ${what}`);
        warnAt = now() + WARN_EVERY_MS;
      }
      await sleep(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  };

  const confirmed: WritersConfirmed["confirmed"] = async (first, signal) => {
    let generation = first;
    await untilNone(
      "writers that have not read the suppressions",
      async () => {
        const list = await leases.list();
        // A Redis that lost its last second no longer knows the generation.
        if (list.generation < generation) generation = await leases.announce();
        const behind = list.leases.filter((lease) => lease.confirmed < generation);
        return [
          ...(list.complete ? [] : ["leases that a restarted Redis may have lost"]),
          ...behind.map(({ service, id }) => `${service} ${id}`),
        ];
      },
      signal,
    );
    const before = await store.runningInserts();
    await untilNone(
      "an INSERT that is running",
      async () => {
        const running = await store.runningInserts();
        return [...before].filter((id) => running.has(id));
      },
      signal,
    );
    return generation;
  };

  return {
    tell: async () => void (await leases.announce()),
    announce: async (signal) => confirmed(await leases.announce(), signal),
    confirmed,
  };
};
