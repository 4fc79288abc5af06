import { randomUUID } from "node:crypto";
import { createLoop, type Logger, type Part } from "@conversation-export/runtime";
import { type Coordination, UNKNOWN_REDIS } from "@conversation-export/warehouse";

export type RunHolders = {
  readonly own: string;
  /** @throws WarehouseError */
  readonly alive: () => Promise<ReadonlySet<string>>;
  /** No live process uses another Redis. @throws WarehouseError */
  readonly isOnlyRedis: () => Promise<boolean>;
  /** Announced before anything runs. */
  readonly part: Part;
};

const ANNOUNCE_EVERY_MS = 10_000;

export const createRunHolders = (deps: {
  readonly coordination: Pick<Coordination, "noteProcess" | "processes">;
  readonly redisId: () => Promise<string>;
  readonly log: Logger;
}): RunHolders => {
  const { coordination, log } = deps;
  const own = randomUUID();
  /** Kept while Redis is away, or its runs would count as dead. */
  let redis = UNKNOWN_REDIS;
  const announce = async (): Promise<void> => {
    try {
      redis = await deps.redisId().catch(() => redis);
      await coordination.noteProcess({ id: own, redis });
    } catch (error) {
      log.warn({ err: error }, "recording that this process is alive failed");
    }
  };
  const loop = createLoop({ turn: announce, pauseMs: ANNOUNCE_EVERY_MS, pauseFirst: true });
  return {
    own,
    alive: async () => new Set([own, ...(await coordination.processes()).map(({ id }) => id)]),
    isOnlyRedis: async () => (await coordination.processes()).every((one) => one.redis === redis),
    part: {
      name: "alive",
      start: async () => {
        await announce();
        await loop.start();
      },
      stop: loop.stop,
    },
  };
};
