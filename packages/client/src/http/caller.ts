import {
  apiError,
  ExportAnswerError,
  ExportConnectionError,
  hadNoEffect,
  LongAnswerError,
} from "./errors.ts";
import { troubleOf } from "./connection-trouble.ts";
import { createRetry, reasonOf, type Retry, type RetryOptions } from "./retry.ts";
import { visibleText } from "./visible-text.ts";
import { createMonitor, type Watch } from "./watch.ts";

export type Query = Readonly<Record<string, string | number | null | undefined>>;

export type Call = {
  /** Or a whole address of the same host. */
  readonly path: string;
  readonly query?: Query;
  readonly accept?: string;
  /** Makes it a POST of JSON. */
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  /** Of JSON; 256 MiB by default. */
  readonly maxBytes?: number | undefined;
};

export type Opened = {
  readonly headers: Headers;
  /** @throws ExportConnectionError */
  readonly chunks: AsyncGenerator<Uint8Array, void>;
  /** Ends an answer whose `chunks` are not read: their `return` would not. */
  cancel(): Promise<void>;
};

/** Sends the key to one host only. */
export type Caller = {
  /** Repeated until an answer begins. @throws ExportApiError, ExportConnectionError */
  open(call: Call): Promise<Opened>;
  /** Repeated until complete. @throws LongAnswerError */
  json(call: Call): Promise<{ readonly headers: Headers; readonly value: unknown; readonly text: string }>;
  readonly retry: Retry;
};

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

const IDLE_MS = 120_000;

export const isKey = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);

const requireKey = (apiKey: string): void => {
  if (!isKey(apiKey)) {
    throw new TypeError("apiKey: must be one line of visible ASCII characters without spaces");
  }
};

const connectionError = (
  error: unknown,
  { signal, host, hasAnswered }: { signal: AbortSignal; host: string; hasAnswered: boolean },
): Error => {
  if (signal.aborted) return reasonOf(signal);
  const { said, hint, isUnsent, isLasting } = troubleOf(error, hasAnswered);
  const message = `the connection to ${host} failed: ${said}${hint === null ? "" : `, ${hint}`}`;
  return new ExportConnectionError(message, { isUnsent, isLasting, cause: error });
};

const MAX_ADDRESS = 200;

/** A redirect could send the key to another host. */
const refuseRedirect = (response: Response): void => {
  if (response.type !== "opaqueredirect" && (response.status < 300 || response.status > 399)) return;
  const to = response.headers.get("location");
  throw new ExportAnswerError(
    `the service redirects${to === null ? "" : ` to ${visibleText(to, MAX_ADDRESS)}`}: give the address that it has as base address`,
  );
};

async function* chunksOf(response: Response, watch: Watch, host: string): AsyncGenerator<Uint8Array, void> {
  const reader = response.body?.getReader();
  try {
    while (reader !== undefined) {
      watch.start();
      const { done, value } = await reader.read();
      watch.stop();
      if (done) return;
      yield value as Uint8Array;
    }
  } catch (error) {
    throw connectionError(error, { signal: watch.signal, host, hasAnswered: true });
  } finally {
    watch.end();
    await reader?.cancel().catch(() => undefined);
  }
}

const MAX_BYTES = 256 * 1024 * 1024;

const textOf = async (chunks: AsyncGenerator<Uint8Array, void>, maxBytes = MAX_BYTES): Promise<string> => {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new LongAnswerError(maxBytes);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
};

const parse = (text: string, headers: Headers): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    const type = headers.get("content-type") ?? "no type";
    throw new ExportAnswerError(`the answer is not JSON, but ${text.length} characters of ${type}`);
  }
};

const baseOf = (baseUrl: string | URL): URL => {
  const base = new URL(baseUrl);
  if (base.protocol !== "http:" && base.protocol !== "https:") {
    throw new TypeError(`baseUrl: must begin with http:// or https://, is ${base.href}`);
  }
  base.search = "";
  base.hash = "";
  base.pathname = `${base.pathname.replace(/\/+$/, "")}/`;
  return base;
};

export const createCaller = (options: ClientOptions): Caller => {
  const { apiKey, signal, headers = {}, idleMs = IDLE_MS } = options;
  // In browsers `fetch` must be called on the window.
  const { fetch = globalThis.fetch.bind(globalThis) } = options;
  const base = baseOf(options.baseUrl);
  requireKey(apiKey);
  const retry = createRetry(options.retry, signal);

  /** @throws ExportAnswerError for another host */
  const addressOf = (path: string, query: Query = {}): URL => {
    const isLink = /^https?:/i.test(path);
    if (isLink && !URL.canParse(path)) throw new ExportAnswerError("a link is no address");
    const url = isLink ? new URL(path) : new URL(path.replace(/^\//, ""), base);
    if (url.host !== base.host) {
      throw new ExportAnswerError(`the link ${url.origin} leads away from ${base.host}: it is not followed`);
    }
    // A proxied link may say http; the key must keep to the caller's origin.
    const own = new URL(base.origin);
    // A path that begins with // would resolve to another host.
    own.pathname = url.pathname;
    own.search = url.search;
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) own.searchParams.set(name, String(value));
    }
    return own;
  };

  /** A host that answered once may do so again, so no error is final. */
  let hasAnswered = false;
  const send = async (call: Call): Promise<Opened> => {
    const watch = createMonitor(idleMs, signal);
    const { path, query, accept = "application/json", body, idempotencyKey } = call;
    const url = addressOf(path, query);
    let response: Response;
    try {
      watch.start();
      response = await fetch(url, {
        method: body === undefined ? "GET" : "POST",
        redirect: "manual",
        signal: watch.signal,
        headers: {
          ...headers,
          accept,
          authorization: `Bearer ${apiKey}`,
          ...(body !== undefined && { "content-type": "application/json" }),
          ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    } catch (error) {
      watch.end();
      throw connectionError(error, { signal: watch.signal, host: base.host, hasAnswered });
    }
    hasAnswered = true;
    const chunks = chunksOf(response, watch, base.host);
    const cancel = async (): Promise<void> => {
      watch.end();
      await response.body?.cancel().catch(() => undefined);
    };
    if (response.ok) return { headers: response.headers, chunks, cancel };
    const text = await textOf(chunks);
    refuseRedirect(response);
    throw apiError(response, text);
  };

  const repeat = async <T>(call: Call, attempt: () => Promise<T>): Promise<T> => {
    const isSafe = call.body === undefined || call.idempotencyKey !== undefined;
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!isSafe && !hadNoEffect(error)) throw error;
        await retry.wait(error, failures);
      }
    }
  };

  return {
    retry,
    open: (call) => repeat(call, () => send(call)),
    json: (call) =>
      repeat(call, async () => {
        const { headers, chunks } = await send(call);
        const text = await textOf(chunks, call.maxBytes);
        return { headers, value: parse(text, headers), text };
      }),
  };
};
