import { createLoop } from "@conversation-export/runtime";

export const createAnswerMonitor = (deps: { name: string; ping: () => Promise<void>; everyMs: number }) => {
  const { name, ping, everyMs } = deps;
  let answer: true | string = `${name} has not been asked yet`;

  const ask = async (): Promise<void> => {
    try {
      await ping();
      answer = true;
    } catch (error) {
      answer = error instanceof Error ? error.message : String(error);
    }
  };

  const watch = createLoop({ turn: ask, pauseMs: everyMs, pauseFirst: true });

  return {
    start: async (): Promise<void> => {
      await ask();
      await watch.start();
    },
    stop: async (): Promise<void> => {
      const stopped = watch.stop();
      answer = "stopping";
      await stopped;
    },
    /** Else the reason why not. */
    answers: (): true | string => answer,
  };
};
