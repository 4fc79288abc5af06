import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "@conversation-export/queue";

export type RedisWatch = {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** true when Redis has answered the last question, otherwise why it has not. */
  answers(): true | string;
};

/** Asks Redis every `everyMs` whether it is there. */
export const createRedisWatch = (deps: { redis: Pick<Redis, "ping">; everyMs: number }): RedisWatch => {
  const { redis, everyMs } = deps;
  const abort = new AbortController();
  let answer: true | string = "Redis has not been asked yet";
  let loop = Promise.resolve();

  const ask = async (): Promise<void> => {
    try {
      await redis.ping();
      answer = true;
    } catch (error) {
      answer = error instanceof Error ? error.message : String(error);
    }
  };

  const watch = async (): Promise<void> => {
    while (!abort.signal.aborted) {
      await sleep(everyMs, undefined, { signal: abort.signal }).catch(() => undefined);
      if (!abort.signal.aborted) await ask();
    }
  };

  return {
    start: async () => {
      await ask();
      loop = watch();
    },
    stop: async () => {
      abort.abort();
      answer = "stopping";
      await loop;
    },
    answers: () => answer,
  };
};
