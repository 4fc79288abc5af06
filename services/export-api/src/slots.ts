import { ServiceError } from "@conversation-export/runtime";

export type Slots = {
  /**
   * Waits for a slot; the function given back frees it, once. Rejects with ServiceError `too_many_pages` (retryable)
   * when too many wait or the wait was too long, and with the reason of `signal` when it aborts first.
   */
  take(clientId: string, signal: AbortSignal): Promise<() => void>;
  readonly inUse: number;
  readonly waiting: number;
};

type Waiter = { readonly grant: () => void; readonly refuse: (error: Error) => void };
type Line = { running: number; readonly waiters: Waiter[] };

/**
 * Slots for work that several clients share fairly: a freed slot goes to the waiting clients by turns, within a client
 * to who came first. A client at its own cap waits without holding up others.
 * @param deps.maxWaiting how many may wait; when all places are taken, a client with fewer waiting takes the place of
 * the newest of the client with the most, so that each has an equal share
 * @param deps.maxWaitMs how long one may wait
 */
export const createSlots = (deps: {
  readonly perProcess: number;
  readonly perClient: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}): Slots => {
  const { perProcess, perClient, maxWaiting, maxWaitMs } = deps;
  // Every client that runs or waits; those who wait in the order of their turns.
  const lines = new Map<string, Line>();
  let inUse = 0;
  let waiting = 0;

  const lineOf = (clientId: string): Line => {
    const line = lines.get(clientId) ?? { running: 0, waiters: [] };
    lines.set(clientId, line);
    return line;
  };

  const forget = (clientId: string, line: Line): void => {
    if (line.running === 0 && line.waiters.length === 0) lines.delete(clientId);
  };

  const occupy = (clientId: string, line: Line): (() => void) => {
    let held = true;
    inUse += 1;
    line.running += 1;
    return () => {
      if (!held) return;
      held = false;
      inUse -= 1;
      line.running -= 1;
      forget(clientId, line);
      grantFreed();
    };
  };

  /** One is enough: before the slot was freed, whoever waited while another was free was at its own cap. */
  const grantFreed = (): void => {
    const next = [...lines].find(([, { running, waiters }]) => waiters.length > 0 && running < perClient);
    if (next === undefined) return;
    const [clientId, line] = next;
    // Behind everybody else: its next turn comes after theirs.
    lines.delete(clientId);
    lines.set(clientId, line);
    line.waiters[0]?.grant();
  };

  /** Makes room for one more of this client at the cost of the client that has the most waiting. */
  const displace = (clientId: string): boolean => {
    const own = lines.get(clientId)?.waiters.length ?? 0;
    const longest = [...lines.values()].reduce<Line | undefined>(
      (most, line) => (line.waiters.length > (most?.waiters.length ?? own + 1) ? line : most),
      undefined,
    );
    longest?.waiters.at(-1)?.refuse(tooMany("others wait for their share"));
    return longest !== undefined;
  };

  const wait = (clientId: string, signal: AbortSignal): Promise<() => void> =>
    new Promise((resolve, reject) => {
      const line = lines.get(clientId) ?? { running: 0, waiters: [] };
      // A client that did not wait has its first turn after those who do.
      if (line.waiters.length === 0) lines.delete(clientId);
      lines.set(clientId, line);
      const leave = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        line.waiters.splice(line.waiters.indexOf(waiter), 1);
        waiting -= 1;
      };
      const waiter: Waiter = {
        grant: () => {
          leave();
          resolve(occupy(clientId, line));
        },
        refuse: (error) => {
          leave();
          forget(clientId, line);
          reject(error);
        },
      };
      const abort = (): void => waiter.refuse(signal.reason as Error);
      const timer = setTimeout(() => waiter.refuse(tooMany("the wait was too long")), maxWaitMs);
      signal.addEventListener("abort", abort, { once: true });
      line.waiters.push(waiter);
      waiting += 1;
    });

  return {
    take: async (clientId, signal) => {
      signal.throwIfAborted();
      // Whoever waits while a slot is free is at its own cap, so nobody is passed over.
      if (inUse < perProcess && (lines.get(clientId)?.running ?? 0) < perClient) {
        return occupy(clientId, lineOf(clientId));
      }
      if (waiting >= maxWaiting && !displace(clientId)) throw tooMany("too many wait");
      return wait(clientId, signal);
    },
    get inUse() {
      return inUse;
    },
    get waiting() {
      return waiting;
    },
  };
};

const tooMany = (why: string): ServiceError =>
  new ServiceError("too_many_pages", `no slot to read a page: ${why}`, { retryable: true });
