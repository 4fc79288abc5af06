import { within } from "@conversation-export/runtime";

/**
 * Runs a drain; resolves when it ends or after `waitMs`, then with `onLate`.
 * @param options.onLate called when `waitMs` have passed first; the drain goes on
 * @param options.onError called with the error of the drain, also of a late one
 */
export const drainWithin = async (
  drain: () => void | Promise<void>,
  options: {
    readonly waitMs: number;
    readonly onLate: () => void;
    readonly onError: (error: unknown) => void;
  },
): Promise<void> => {
  const { waitMs, onLate, onError } = options;
  const drained = Promise.resolve().then(drain);
  try {
    await within(drained, waitMs, () => {
      onLate();
      drained.catch(onError);
    });
  } catch (error) {
    onError(error);
  }
};
