import { setTimeout as sleep } from "node:timers/promises";

export type AnswerWatch = {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** true when the last question was answered, otherwise why it was not. */
  answers(): true | string;
};

/** Asks a server every `everyMs` whether it is there. */
export const createAnswerWatch = (deps: {
  name: string;
  ping: () => Promise<void>;
  everyMs: number;
}): AnswerWatch => {
  const { name, ping, everyMs } = deps;
  const abort = new AbortController();
  let answer: true | string = `${name} has not been asked yet`;
  let loop = Promise.resolve();

  const ask = async (): Promise<void> => {
    try {
      await ping();
      answer = true;
    } catch (error) {
      answer = error instanceof Error ? error.message : String(error);
    }
  };

  const watch = async (): Promise<void> => {
    while (!abort.signal.aborted) {
      await sleep(everyMs, undefined, { signal: abort.signal }).catch(() => undefined);
      if (!abort.signal.aborted) await ask();
    }
  };

  return {
    start: async () => {
      await ask();
      loop = watch();
    },
    stop: async () => {
      abort.abort();
      answer = "stopping";
      await loop;
    },
    answers: () => answer,
  };
};
