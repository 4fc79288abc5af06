import { within } from "@conversation-export/runtime";

const ALONE_FOR_MS = 1_000;

/**
 * Asks Redis while it answers: the first failure ends that, and then one call at a time tries again, at the
 * earliest after a second.
 */
export type Asking = {
  /** undefined: Redis was not asked, or did not answer in time. Never rejects. */
  ask<Answer extends {} | null>(question: () => Promise<Answer>): Promise<Answer | undefined>;
};

/**
 * @param deps.isConnected without a connection nothing is asked
 * @param deps.answerWithinMs how long a call waits for Redis at most
 * @param deps.onAway called when Redis has failed to answer first
 * @param deps.onBack called when it answers again
 */
export const createAsking = (deps: {
  readonly isConnected: () => boolean;
  readonly answerWithinMs: number;
  readonly onAway?: (error: unknown) => void;
  readonly onBack?: () => void;
  /** Milliseconds that never run backwards. */
  readonly clock?: () => number;
}): Asking => {
  const { isConnected, answerWithinMs, onAway, onBack, clock = () => performance.now() } = deps;
  let aloneSince: number | undefined;
  let probing = false;

  const mayAsk = (): boolean =>
    isConnected() && (aloneSince === undefined || (!probing && clock() - aloneSince >= ALONE_FOR_MS));

  return {
    ask: async (question) => {
      if (!mayAsk()) return undefined;
      const probe = aloneSince !== undefined;
      if (probe) probing = true;
      try {
        const answer = await within(question(), answerWithinMs, () => {
          throw new Error(`no answer within ${answerWithinMs} ms`);
        });
        // Only a probe proves that Redis is back; other answers may belong to requests from before the
        // failure.
        if (probe) {
          aloneSince = undefined;
          onBack?.();
        }
        return answer;
      } catch (error) {
        if (aloneSince === undefined) onAway?.(error);
        aloneSince = clock();
        return undefined;
      } finally {
        if (probe) probing = false;
      }
    },
  };
};
