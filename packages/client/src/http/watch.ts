import { ExportConnectionError } from "./errors.ts";

export type Watch = {
  readonly signal: AbortSignal;
  start(): void;
  /** A slow reader is no idle connection. */
  stop(): void;
  end(): void;
};

export const createMonitor = (idleMs: number, caller: AbortSignal | undefined): Watch => {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onAbort = (): void => controller.abort(caller?.reason);
  if (caller?.aborted === true) onAbort();
  else caller?.addEventListener("abort", onAbort, { once: true });
  const stop = (): void => clearTimeout(timer);
  return {
    signal: controller.signal,
    start: () => {
      stop();
      timer = setTimeout(() => {
        const message = `nothing came from the service for ${idleMs} ms`;
        controller.abort(new ExportConnectionError(message, { isUnsent: false }));
      }, idleMs);
    },
    stop,
    end: () => {
      stop();
      caller?.removeEventListener("abort", onAbort);
    },
  };
};
