import { apiError, ExportAnswerError, ExportConnectionError, hadNoEffect } from "./errors.ts";
import { troubleOf } from "./connection-trouble.ts";
import { createRetry, reasonOf, type Retry, type RetryDeps, type RetryOptions } from "./retry.ts";
import { visibleText } from "./visible-text.ts";
import { createWatch, type Watch } from "./watch.ts";

export type Query = Readonly<Record<string, string | number | null | undefined>>;

export type Call = {
  /** Behind the base address, such as `/v2/end-users`, or a whole address of the same host. */
  readonly path: string;
  readonly query?: Query;
  readonly accept?: string;
  /** Makes the call a POST of this value as JSON. */
  readonly body?: unknown;
  readonly idempotencyKey?: string;
};

export type Opened = {
  readonly headers: Headers;
  /** The body in parts. @throws ExportConnectionError when it breaks off */
  readonly chunks: AsyncGenerator<Uint8Array, void>;
};

/** Sends requests with the key, to one host only. All methods reject with the reason of an aborted signal. */
export type Caller = {
  /** An answer with status 200, repeated until it begins. @throws ExportApiError, ExportConnectionError */
  open(call: Call): Promise<Opened>;
  /** The whole JSON of an answer with status 200, repeated until it is whole. */
  json(call: Call): Promise<{ readonly headers: Headers; readonly value: unknown; readonly text: string }>;
  /** What `path` or a link leads to. @throws ExportAnswerError for a link to another host */
  addressOf(path: string, query?: Query): URL;
  readonly retry: Retry;
};

export type CallerOptions = {
  readonly baseUrl: string | URL;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
  readonly headers: Readonly<Record<string, string>>;
  readonly retry: RetryOptions;
  /** ms without any byte after which a request is given up. */
  readonly idleMs: number;
};

/** True for visible characters of ASCII: others cannot be sent. */
export const isKey = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);

const requireKey = (apiKey: string): void => {
  if (!isKey(apiKey)) {
    throw new TypeError("apiKey: must be one line of visible ASCII characters without spaces");
  }
};

/** What fetch or its body threw: the reason of an abort, else a broken connection. */
const connectionError = (
  error: unknown,
  { signal, host, hasAnswered }: { signal: AbortSignal; host: string; hasAnswered: boolean },
): Error => {
  if (signal.aborted) return reasonOf(signal);
  const { said, hint, isUnsent, isLasting } = troubleOf(error, hasAnswered);
  const message = `the connection to ${host} failed: ${said}${hint === null ? "" : `, ${hint}`}`;
  return new ExportConnectionError(message, { isUnsent, isLasting, cause: error });
};

const ok = (response: Response): boolean => response.status >= 200 && response.status < 300;

/** Characters. */
const MAX_ADDRESS = 200;

/** A redirect could lead the key to another host, so it is never followed. */
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
    // Tells the service that nobody reads any more.
    await reader?.cancel().catch(() => undefined);
  }
}

/** Characters; a page of 10,000 records is far smaller. */
const MAX_TEXT_LENGTH = 256 * 1024 * 1024;

const textOf = async (chunks: AsyncGenerator<Uint8Array, void>): Promise<string> => {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_TEXT_LENGTH) throw new ExportAnswerError("the answer does not end");
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

/** The address with one last slash, so that paths are appended to it. */
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

export const createCaller = (options: CallerOptions, deps: RetryDeps & { now: () => number }): Caller => {
  const base = baseOf(options.baseUrl);
  requireKey(options.apiKey);
  const retry = createRetry(options.retry, deps);

  const addressOf: Caller["addressOf"] = (path, query = {}) => {
    const isLink = /^https?:/i.test(path);
    if (isLink && !URL.canParse(path)) throw new ExportAnswerError("a link is no address");
    const url = isLink ? new URL(path) : new URL(path.replace(/^\//, ""), base);
    if (url.host !== base.host) {
      throw new ExportAnswerError(`the link ${url.origin} leads away from ${base.host}: it is not followed`);
    }
    // A link behind a proxy may say http: the key only takes the way that the caller chose.
    const own = new URL(url.pathname + url.search, base.origin);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) own.searchParams.set(name, String(value));
    }
    return own;
  };

  /** What has answered before may do so again. */
  let hasAnswered = false;
  const send = async (call: Call): Promise<Opened> => {
    const watch = createWatch(options.idleMs, deps.signal);
    const { path, query, accept = "application/json", body, idempotencyKey } = call;
    const url = addressOf(path, query);
    let response: Response;
    try {
      watch.start();
      response = await options.fetch(url, {
        method: body === undefined ? "GET" : "POST",
        redirect: "manual",
        signal: watch.signal,
        headers: {
          ...options.headers,
          accept,
          authorization: `Bearer ${options.apiKey}`,
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
    if (ok(response)) return { headers: response.headers, chunks };
    const text = await textOf(chunks);
    refuseRedirect(response);
    throw apiError(response, text, deps.now());
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
    addressOf,
    retry,
    open: (call) => repeat(call, () => send(call)),
    json: (call) =>
      repeat(call, async () => {
        const { headers, chunks } = await send(call);
        const text = await textOf(chunks);
        return { headers, value: parse(text, headers), text };
      }),
  };
};
