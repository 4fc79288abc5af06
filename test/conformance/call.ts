import type { RunningSystem } from "../system/system.ts";

export type ErrorItem = { readonly type: string; readonly message: string; readonly details: string | null };

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
  readonly records: readonly Record<string, unknown>[];
  readonly next: string | null | undefined;
  readonly error: ErrorItem | undefined;
};

export type CallOptions = {
  readonly key?: string | undefined;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

type Links = { readonly next_page_uri?: string | null; readonly next_page_url?: string | null };
type Envelope = Links & {
  readonly data?: readonly Record<string, unknown>[];
  readonly meta?: Links;
  readonly errors?: readonly ErrorItem[];
};

const linkOf = ({ meta, ...own }: Envelope): string | null | undefined =>
  [meta, own]
    .flatMap((links) => [links?.next_page_uri, links?.next_page_url])
    .find((link) => link !== undefined);

/** Sends the body as JSON unless it is a text. */
export const call = async (url: string, options: CallOptions = {}): Promise<Answer> => {
  const { key, method = "GET", body, headers = {} } = options;
  const response = await fetch(url, {
    method,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type") === "application/json" && text !== "";
  const parsed = (isJson ? JSON.parse(text) : undefined) as Envelope | undefined;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: parsed,
    records: parsed?.data ?? [],
    next: linkOf(parsed ?? {}),
    error: parsed?.errors?.[0],
  };
};

/** Throws unless the answer is 200. */
export const read = async (url: string, key: string, options: CallOptions = {}): Promise<Answer> => {
  const answer = await call(url, { key, ...options });
  if (answer.status !== 200) throw new Error(`${answer.status} for ${url}: ${answer.text.slice(0, 500)}`);
  return answer;
};

export const ingestAll = (system: RunningSystem): Promise<void> => system.caughtUp(120_000);
