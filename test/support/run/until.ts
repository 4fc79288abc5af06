import { setTimeout as sleep } from "node:timers/promises";

/** Polls until the condition holds; throws with `what` when it does not within the deadline, or what it throws. */
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
