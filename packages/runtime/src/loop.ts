export type Loop = {
  /** Resolves at once. */
  start(): Promise<void>;
  stop(): Promise<void>;
};

/** A rejected `turn` is a bug and ends the loop as an unhandled rejection. */
export const createLoop = (deps: {
  readonly turn: () => Promise<unknown>;
  readonly pauseMs: number | (() => number);
  readonly pauseFirst?: boolean;
}): Loop => {
  const { turn, pauseMs, pauseFirst = false } = deps;
  let running = Promise.resolve();
  let stopped = false;
  let endPause = (): void => {};

  const pause = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, typeof pauseMs === "number" ? pauseMs : pauseMs());
    endPause = resolve;
    await promise;
    clearTimeout(timer);
  };

  const run = async (): Promise<void> => {
    if (pauseFirst && !stopped) await pause();
    while (!stopped) {
      await turn();
      if (!stopped) await pause();
    }
  };

  return {
    start: async () => {
      running = run();
    },
    stop: () => {
      stopped = true;
      endPause();
      return running;
    },
  };
};
