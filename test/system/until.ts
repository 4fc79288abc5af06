import { setTimeout as sleep } from "node:timers/promises";

/** So many times longer than on a quiet machine may things take before a test calls them hung. */
const PATIENCE = 4;
const SHORTEST_PAUSE_MS = 50;
/** Of what was waited already: who polls a busy system more often makes it slower. */
const PAUSE_SHARE = 1 / 20;

/**
 * Polls until the condition holds, for a time that is promised to users; without `pauseMs` less often the longer it
 * takes.
 * @throws Error with `what` after `promisedMs`, and what the condition throws.
 */
export const within = async (
  what: string,
  promisedMs: number,
  condition: () => Promise<boolean> | boolean,
  pauseMs?: number,
): Promise<void> => {
  const begun = performance.now();
  while (!(await condition())) {
    const waited = performance.now() - begun;
    if (waited > promisedMs) throw new Error(`not within ${promisedMs} ms: ${what}`);
    await sleep(pauseMs ?? Math.max(SHORTEST_PAUSE_MS, waited * PAUSE_SHARE));
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
