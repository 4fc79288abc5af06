import { setTimeout as sleep } from "node:timers/promises";

/** So many times longer than on a quiet machine may things take before a test calls them hung. */
const PATIENCE = 4;

/**
 * Polls until the condition holds, for a time that is promised to users.
 * @throws Error with `what` after `promisedMs`, and what the condition throws.
 */
export const within = async (
  what: string,
  promisedMs: number,
  condition: () => Promise<boolean> | boolean,
  pauseMs = 50,
): Promise<void> => {
  const end = performance.now() + promisedMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${promisedMs} ms: ${what}`);
    await sleep(pauseMs);
  }
};

/**
 * Polls until the condition holds. `quietMs` is ample on a quiet machine; other load may take up a multiple of it.
 * @throws Error with `what` when it takes far longer, and what the condition throws.
 */
export const until = (
  what: string,
  quietMs: number,
  condition: () => Promise<boolean> | boolean,
  pauseMs?: number,
): Promise<void> => within(what, PATIENCE * quietMs, condition, pauseMs);
