import { spawn } from "node:child_process";
import { once } from "node:events";
import { tied } from "@conversation-export/local-stack";
import { until } from "../system/until.ts";

const START_MS = 15_000;
const ANSWER_MS = 2_000;
const STOP_MS = 20_000;

export type ServedProgram = { isServing(): boolean; stop(): Promise<void> };

export const startServedProgram = async (
  program: string,
  args: readonly string[],
  url: string,
): Promise<ServedProgram> => {
  const [first, ...words] = tied([program, ...args]);
  const child = spawn(first, words, { stdio: ["ignore", "inherit", "inherit"] });
  const isServing = (): boolean => child.exitCode === null && child.signalCode === null;
  const stop = async (): Promise<void> => {
    if (!isServing()) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(late);
  };
  const answers = async (): Promise<boolean> =>
    fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) }).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    await Promise.race([
      until(`${program} answers`, START_MS, answers),
      // `once` rejects with an error of the start.
      once(child, "exit").then(([code]) => Promise.reject(new Error(`${program} ended with ${code}`))),
    ]);
  } catch (error) {
    await stop();
    throw error;
  }
  return { isServing, stop };
};
