import { type Caller, createCaller } from "./http/caller.ts";
import { type RetryOptions, sleep } from "./http/retry.ts";

const IDLE_MS = 120_000;

export type ClientOptions = {
  /** The address of the service with its `/api` prefix. */
  readonly baseUrl: string | URL;
  readonly apiKey: string;
  /** Instead of the global one. */
  readonly fetch?: typeof fetch;
  /** Ends every call of this client. */
  readonly signal?: AbortSignal;
  readonly retry?: RetryOptions;
  /** ms without any byte after which a request is given up and repeated; 120,000 by default. */
  readonly idleMs?: number;
  /** Headers of every request, such as `Accept-Encoding` where the runtime lets it be set. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends requests as the options say. */
export const callerOf = (options: ClientOptions): Caller =>
  createCaller(
    {
      baseUrl: options.baseUrl,
      apiKey: options.apiKey,
      // A method of the window in browsers.
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      headers: options.headers ?? {},
      retry: options.retry ?? {},
      idleMs: options.idleMs ?? IDLE_MS,
    },
    { random: Math.random, sleep, signal: options.signal, now: Date.now },
  );
