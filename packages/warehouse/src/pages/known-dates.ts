import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { readKnownUpTo } from "../changes/moved-dates.ts";
import type { Session } from "../session/session.ts";

const ASK_EVERY_MS = 5_000;
const TIMEOUT_MS = 5_000;
/** With an older one, pages look up all their records rather than the entries since. */
const LATELY: Micros = 180 * MICROS_IN_SECOND;

/** Up to when `moved_dates` is complete, µs; 0: unknown. Never newer than the table. */
export const createDatesKnown = (from: Session): (() => Promise<Micros>) => {
  const session = from.with({ timeoutMs: TIMEOUT_MS });
  let asked: Promise<Micros> = Promise.resolve(0);
  let askedAt = -Infinity;
  return async () => {
    const now = Date.now();
    if (Math.abs(now - askedAt) > ASK_EVERY_MS) {
      askedAt = now;
      // Pages are right without it.
      asked = readKnownUpTo(session, "pages.known").catch(() => 0);
    }
    const known = await asked;
    return known > now * 1_000 - LATELY ? known : 0;
  };
};
