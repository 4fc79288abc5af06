import { setTimeout as sleep } from "node:timers/promises";
import type { Micros } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import type { Coordination, StableReader } from "@conversation-export/warehouse";

const ASK_EVERY_MS = 250;
const WARN_EVERY_MS = 30_000;

export type LatestJudgement = {
  /** Does not wait for writers. */
  announce(): Promise<void>;
  /**
   * Resolves when no row judged by older suppressions can still appear, nor one with an earlier stamp than it returns.
   * @throws WarehouseError, the reason of `signal`
   */
  required(signal: AbortSignal): Promise<Micros>;
};

/** `patienceMs`: after it ClickHouse rejects earlier batches. */
export const createLatestJudgement = (deps: {
  readonly coordination: Pick<
    Coordination,
    "announce" | "beginGeneration" | "requireGeneration" | "look" | "running"
  >;
  readonly stable: StableReader;
  readonly patienceMs: number;
  readonly now: () => number;
  readonly log: Logger;
}): LatestJudgement => {
  const { coordination, stable, now, log } = deps;

  const running = async (): Promise<ReadonlySet<string>> =>
    new Set((await coordination.running()).map(({ id }) => id));

  const isStable = async (instant: Micros, signal: AbortSignal): Promise<boolean> => {
    const end = now() + deps.patienceMs;
    while (now() < end) {
      if ((await stable.load()).until > instant) return true;
      await sleep(ASK_EVERY_MS, undefined, { signal });
    }
    return false;
  };

  const untilEnded = async (inserts: ReadonlySet<string>, signal: AbortSignal): Promise<void> => {
    let warnAt = now() + WARN_EVERY_MS;
    for (;;) {
      const present = await running();
      const awaited = [...inserts].filter((id) => present.has(id));
      if (awaited.length === 0) return;
      if (now() >= warnAt) {
        log.warn({ awaited }, "an erasure waits for INSERTs that are running");
        warnAt = now() + WARN_EVERY_MS;
      }
      await sleep(ASK_EVERY_MS, undefined, { signal });
    }
  };

  return {
    announce: async () => void (await coordination.beginGeneration()),
    required: async (signal) => {
      const generation = await coordination.beginGeneration();
      const { clock, announced } = await coordination.look();
      const instant = Math.max(clock, announced);
      const isSettled = await isStable(instant, signal);
      signal.throwIfAborted();
      if (!isSettled) await coordination.announce(instant);
      await coordination.requireGeneration(generation);
      // Later INSERTs are rejected, and unlisted ones have ended or are later.
      await untilEnded(await running(), signal);
      return instant;
    },
  };
};
