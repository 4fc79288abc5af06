import { type Caller, createCaller } from "./http/caller.ts";
import { type RetryOptions, sleep } from "./http/retry.ts";

const IDLE_MS = 120_000;

export type ClientOptions = {
  /** With `/api`. */
  readonly baseUrl: string | URL;
  readonly apiKey: string;
  readonly fetch?: typeof fetch;
  readonly signal?: AbortSignal;
  readonly retry?: RetryOptions;
  /** Milliseconds without a byte after which a request is repeated; 120,000 by default. */
  readonly idleMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
};

export const callerOf = (options: ClientOptions): Caller =>
  createCaller(
    {
      baseUrl: options.baseUrl,
      apiKey: options.apiKey,
      // In browsers `fetch` must be called on the window.
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      headers: options.headers ?? {},
      retry: options.retry ?? {},
      idleMs: options.idleMs ?? IDLE_MS,
    },
    { random: Math.random, sleep, signal: options.signal, now: Date.now },
  );
