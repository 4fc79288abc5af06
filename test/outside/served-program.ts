import { spawn } from "node:child_process";
import { once } from "node:events";
import { until } from "../system/until.ts";

const START_MS = 15_000;

/**
 * Starts a program that serves HTTP, and waits until `url` answers with 2xx.
 *
 * @returns what ends it and waits for that
 */
export const startServedProgram = async (
  program: string,
  args: readonly string[],
  url: string,
): Promise<() => Promise<void>> => {
  const child = spawn(program, [...args], { stdio: ["ignore", "inherit", "inherit"] });
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  };
  const answers = async (): Promise<boolean> =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    await Promise.race([
      until(`${program} answers`, START_MS, answers),
      once(child, "error").then(([error]) => Promise.reject(error as Error)),
    ]);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
};
