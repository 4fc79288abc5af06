import type { Logger } from "./logger.ts";

/** `stop` is called at most once, perhaps after `start` failed or while it waits. */
export type Part = { name: string; start(): Promise<unknown>; stop(): Promise<unknown> };

export type Running = {
  /** For a bug or a permanent failure. */
  fatal(error: unknown): void;
};

/** Only the words: a warning may hold a client with its password. */
const logWarnings = (log: Logger): void => {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message, stack }) => {
    log.warn({ err: Object.assign(new Error(message), { name, stack }) }, "warning of Node");
  });
};

/** Exits with 1 after any failure, at the deadline, and on a second signal. */
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
