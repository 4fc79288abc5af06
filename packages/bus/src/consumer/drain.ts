import { within } from "@conversation-export/runtime";

/** After `waitMs` the drain goes on; `onError` also gets its late error. */
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
