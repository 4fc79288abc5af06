import { randomUUID } from "node:crypto";
import { createLoop, type Logger, type Part } from "@conversation-export/runtime";
import { type Coordination, UNKNOWN_REDIS } from "@conversation-export/warehouse";

/** Whose the runs with keys in ClickHouse are: jobs processes, each of which tells ClickHouse that it is alive. */
export type RunHolders = {
  readonly own: string;
  /** @throws WarehouseError */
  readonly alive: () => Promise<ReadonlySet<string>>;
  /**
   * Whether no process that is alive uses another Redis than this one.
   * @throws WarehouseError
   */
  readonly isOnlyRedis: () => Promise<boolean>;
  /** Tells so before anything runs, and goes on. */
  readonly part: Part;
};

const ANNOUNCE_EVERY_MS = 10_000;

/** @param deps.redisId the id that the Redis of this process keeps */
export const createRunHolders = (deps: {
  readonly coordination: Pick<Coordination, "noteProcess" | "processes">;
  readonly redisId: () => Promise<string>;
  readonly log: Logger;
}): RunHolders => {
  const { coordination, log } = deps;
  const own = randomUUID();
  /** Stays while Redis is away, or the runs of this process would count as dead. */
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
