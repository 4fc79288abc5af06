/** `work` goes on; its late result is dropped. */
export const within = async <T, Late = never>(
  work: Promise<T>,
  ms: number,
  late: () => Late,
): Promise<T | Late> => {
  const deadline = Promise.withResolvers<Late>();
  const end = (): void => {
    try {
      deadline.resolve(late());
    } catch (error) {
      deadline.reject(error);
    }
  };
  let turn: NodeJS.Immediate | undefined;
  // After a stall an answer may have arrived: it is read before the immediate runs.
  const timer = setTimeout(() => {
    turn = setImmediate(end);
  }, ms);
  try {
    return await Promise.race([work, deadline.promise]);
  } finally {
    clearTimeout(timer);
    clearImmediate(turn);
  }
};

export const unlessAborted = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
};
