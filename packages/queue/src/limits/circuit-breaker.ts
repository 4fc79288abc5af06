import { within } from "@conversation-export/runtime";

const ALONE_FOR_MS = 1_000;

/** After a failure one call a second tries again. */
export const createCircuitBreaker = (deps: {
  readonly isConnected: () => boolean;
  readonly answerWithinMs: number;
  readonly onAway?: (error: unknown) => void;
  readonly onBack?: () => void;
  /** Monotonic milliseconds. */
  readonly clock?: () => number;
}) => {
  const { isConnected, answerWithinMs, onAway, onBack, clock = () => performance.now() } = deps;
  let aloneSince: number | undefined;
  let probing = false;

  const mayAsk = (): boolean =>
    isConnected() && (aloneSince === undefined || (!probing && clock() - aloneSince >= ALONE_FOR_MS));

  return {
    /** undefined: no answer; never rejects. */
    ask: async <Answer extends {} | null>(question: () => Promise<Answer>): Promise<Answer | undefined> => {
      if (!mayAsk()) return undefined;
      const probe = aloneSince !== undefined;
      if (probe) probing = true;
      try {
        const answer = await within(question(), answerWithinMs, () => {
          throw new Error(`no answer within ${answerWithinMs} ms`);
        });
        // Other answers may be to requests from before the failure.
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
