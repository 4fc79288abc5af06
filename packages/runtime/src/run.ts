import type { Logger } from "./logger.ts";

/** Something with a lifetime. `stop` is called at most once; `start` may have failed or still be waiting then. */
export type Part = { name: string; start(): Promise<unknown>; stop(): Promise<unknown> };

export type Running = {
  /** A bug or trouble that cannot pass: logs it, stops every part and ends the process with 1. */
  fatal(error: unknown): void;
};

/**
 * The life of a process. Starts the parts in order and stops the started ones in reverse order on SIGTERM or
 * SIGINT, all within `deadlineMs`, then exits 0. Exits 1 when a start fails, after `fatal`, when the deadline
 * passes (the log names the part that hung), when a stop fails, and at once on a second signal.
 * @param deps.exit for tests; `process.exit` otherwise
 */
export const run = (deps: {
  log: Logger;
  parts: readonly Part[];
  deadlineMs: number;
  signals?: readonly NodeJS.Signals[];
  exit?: (code: number) => void;
}): Running => {
  const { log, parts, deadlineMs } = deps;
  const exit = deps.exit ?? ((code: number) => process.exit(code));
  const started: Part[] = [];
  let stopping = false;
  let exitCode = 0;
  let exited = false;

  const exitOnce = (code: number): void => {
    if (exited) return;
    exited = true;
    exit(code);
  };

  const stopAll = async (): Promise<void> => {
    let current = "";
    const deadline = setTimeout(() => {
      log.fatal({ part: current, deadlineMs }, "stop took longer than its deadline");
      exitOnce(1);
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
    exitOnce(exitCode);
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
        // A part that is stopped while it starts may well reject.
        if (stopping) return;
        log.fatal({ err: error, part: part.name }, "part failed to start");
        stop(1);
        return;
      }
    }
    if (!stopping) log.info("started");
  };

  for (const signal of deps.signals ?? (["SIGTERM", "SIGINT"] as const)) {
    process.on(signal, () => {
      if (stopping) {
        log.warn({ signal }, "second signal, exit at once");
        exitOnce(1);
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
