import { setTimeout as sleep } from "node:timers/promises";

/**
 * Polls until the condition holds.
 * @throws Error with `what` after the deadline, and what the condition throws.
 */
export const until = async (
  what: string,
  deadlineMs: number,
  condition: () => Promise<boolean> | boolean,
  pauseMs = 50,
): Promise<void> => {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${what}`);
    await sleep(pauseMs);
  }
};
