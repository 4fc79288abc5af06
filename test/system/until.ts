import { setTimeout as sleep } from "node:timers/promises";

/** A busy machine may take so many times longer. */
const PATIENCE = 4;
const SHORTEST_PAUSE_MS = 50;
/** Frequent polls slow a busy system further. */
const PAUSE_SHARE = 1 / 20;

/** For times promised to users. @throws Error after `promisedMs` */
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

/** `quietMs`: ample on a quiet machine. @throws Error when it takes far longer */
export const until = (
  what: string,
  quietMs: number,
  condition: () => Promise<boolean> | boolean,
  pauseMs?: number,
): Promise<void> => within(what, PATIENCE * quietMs, condition, pauseMs);

/** Tries again after each error. */
export const untilItWorks = (what: string, quietMs: number, attempt: () => Promise<unknown>): Promise<void> =>
  until(what, quietMs, () =>
    attempt().then(
      () => true,
      () => false,
    ),
  );
