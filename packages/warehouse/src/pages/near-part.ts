import { type Micros, MICROS_IN_DAY } from "@conversation-export/domain";

const NEAR: Micros = 40 * MICROS_IN_DAY;
const WIDER = 8;

/** A read in order begins in all monthly partitions of its window. `to`: exclusive. */
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
