import { type Micros, MICROS_IN_DAY } from "@conversation-export/domain";

/** Lies in two or three partitions. */
const NEAR: Micros = 40 * MICROS_IN_DAY;
const WIDER = 8;

/**
 * Asks about the near part of a window first, then wider ones: a read in order begins in all monthly
 * partitions of its window.
 * @param start first instant of the window, µs
 * @param to its end, exclusive
 * @param ask asks about the rows before an instant
 */
export const askNearFirst = async <T>(
  start: Micros,
  to: Micros,
  ask: (to: Micros) => Promise<T>,
  areEnough: (answer: T) => boolean,
): Promise<T> => {
  for (let length = NEAR; start + length < to; length *= WIDER) {
    const answer = await ask(start + length);
    if (areEnough(answer)) return answer;
  }
  return ask(to);
};
