import { ServiceError } from "@conversation-export/runtime";
import { quotaExceeded } from "../http/api-error.ts";

export type Slots = {
  /**
   * @throws ApiError 429 when the client's own requests fill its share
   * @throws ServiceError `too_many_pages` (retryable), or the reason of `signal`
   */
  take(clientId: string, signal: AbortSignal): Promise<() => void>;
  readonly inUse: number;
  readonly waiting: number;
};

const RETRY_AFTER_SECONDS = 10;

type Waiter = { readonly grant: () => void; readonly refuse: (error: Error) => void };
type Line = { running: number; readonly waiters: Waiter[] };

/**
 * Clients take turns. Without a free place the newest request of the client with the most gives way to a client that
 * has fewer by two at least.
 */
export const createSlots = (deps: {
  readonly perProcess: number;
  readonly perClient: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  readonly onOwn?: () => void;
}): Slots => {
  const { perProcess, perClient, maxWaiting, maxWaitMs, onOwn } = deps;
  // Clients that run or wait, in the order of their turns.
  const lines = new Map<string, Line>();
  let inUse = 0;
  let waiting = 0;

  const lineOf = (clientId: string): Line => {
    const line = lines.get(clientId) ?? { running: 0, waiters: [] };
    lines.set(clientId, line);
    return line;
  };

  const refusal = (line: Line | undefined, why: string): Error => {
    if ((line?.running ?? 0) < perClient) return tooMany(why);
    onOwn?.();
    return quotaExceeded(`allowed: ${perClient} at a time; ${why}`, RETRY_AFTER_SECONDS);
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

  /** One is enough: while other slots were free, only clients at their cap waited. */
  const grantFreed = (): void => {
    const next = [...lines].find(([, { running, waiters }]) => waiters.length > 0 && running < perClient);
    if (next === undefined) return;
    const [clientId, line] = next;
    // Its next turn comes after all others.
    lines.delete(clientId);
    lines.set(clientId, line);
    line.waiters[0]?.grant();
  };

  const displace = (clientId: string): boolean => {
    const own = lines.get(clientId)?.waiters.length ?? 0;
    const longest = [...lines.values()].reduce<Line | undefined>(
      (most, line) => (line.waiters.length > (most?.waiters.length ?? own + 1) ? line : most),
      undefined,
    );
    longest?.waiters.at(-1)?.refuse(refusal(longest, "others wait for their share"));
    return longest !== undefined;
  };

  const wait = (clientId: string, signal: AbortSignal): Promise<() => void> =>
    new Promise((resolve, reject) => {
      const line = lines.get(clientId) ?? { running: 0, waiters: [] };
      // Its first turn comes after those already waiting.
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
      const timer = setTimeout(() => waiter.refuse(refusal(line, "the wait was too long")), maxWaitMs);
      signal.addEventListener("abort", abort, { once: true });
      line.waiters.push(waiter);
      waiting += 1;
    });

  return {
    take: async (clientId, signal) => {
      signal.throwIfAborted();
      // Clients that wait while a slot is free are at their cap, so none is passed over.
      if (inUse < perProcess && (lines.get(clientId)?.running ?? 0) < perClient) {
        return occupy(clientId, lineOf(clientId));
      }
      if (waiting >= maxWaiting && !displace(clientId)) {
        throw refusal(lines.get(clientId), "too many wait");
      }
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
