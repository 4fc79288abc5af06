import type { Logger } from "./logger.ts";

/**
 * Something with a lifetime. `stop` is called at most once, perhaps after `start` failed or while it still
 * waits.
 */
export type Part = { name: string; start(): Promise<unknown>; stop(): Promise<unknown> };

export type Running = {
  /** For a bug or a permanent failure: logs it, stops every part and exits with 1. */
  fatal(error: unknown): void;
};

/**
 * Logs what Node and libraries warn of, which Node would write to standard error as text. A warning may hold
 * the client that it is about, with its password: only its words are logged.
 */
const logWarnings = (log: Logger): void => {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message, stack }) => {
    log.warn({ err: Object.assign(new Error(message), { name, stack }) }, "warning of Node");
  });
};

/**
 * Runs a process. Starts the parts in order. On SIGTERM or SIGINT it stops the started ones in reverse order,
 * all within `deadlineMs`, and exits with 0. Exits with 1 when a start or a stop fails, after `fatal`, when
 * the deadline passes (the log names the part that hung), and at once on a second signal.
 */
export const run = (deps: { log: Logger; parts: readonly Part[]; deadlineMs: number }): Running => {
  const { log, parts, deadlineMs } = deps;
  const started: Part[] = [];
  let stopping = false;
  let exitCode = 0;
  logWarnings(log);

  const stopAll = async (): Promise<void> => {
    let current = "";
    const deadline = setTimeout(() => {
      log.fatal({ part: current, deadlineMs }, "stop took longer than its deadline");
      process.exit(1);
    }, deadlineMs);
    for (const part of started.reverse()) {
      current = part.name;
      try {
        await part.stop();
        log.debug({ part: part.name }, "part stopped");
      } catch (error) {
        exitCode = 1;
        log.error({ err: error, part: part.name }, "part failed to stop");
      }
    }
    clearTimeout(deadline);
    log.info({ exitCode }, "stopped");
    process.exit(exitCode);
  };

  const stop = (code: number): void => {
    exitCode = Math.max(exitCode, code);
    if (stopping) return;
    stopping = true;
    void stopAll();
  };

  const fatal = (error: unknown): void => {
    log.fatal({ err: error }, "fatal");
    stop(1);
  };

  const startAll = async (): Promise<void> => {
    for (const part of parts) {
      if (stopping) return;
      try {
        started.push(part);
        await part.start();
        log.debug({ part: part.name }, "part started");
      } catch (error) {
        // A start may reject because its part was stopped meanwhile.
        if (stopping) return;
        log.fatal({ err: error, part: part.name }, "part failed to start");
        stop(1);
        return;
      }
    }
    if (!stopping) log.info("started");
  };

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stopping) {
        log.warn({ signal }, "second signal, exit at once");
        process.exit(1);
        return;
      }
      log.info({ signal }, "stopping");
      stop(0);
    });
  }
  process.on("uncaughtException", fatal);

  void startAll();
  return { fatal };
};
