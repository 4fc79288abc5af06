import { ExportConnectionError } from "./errors.ts";

/** Aborts a request when its caller does, or when nothing came for too long. */
export type Watch = {
  readonly signal: AbortSignal;
  /** Begins to wait for the next bytes. */
  start(): void;
  /** Ends waiting: what takes the bytes may take its time. */
  stop(): void;
  /** Lets go of the caller's signal. */
  end(): void;
};

export const createWatch = (idleMs: number, caller: AbortSignal | undefined): Watch => {
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
