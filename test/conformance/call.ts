import type { RunningSystem } from "../system/system.ts";

/** Consumer group of ingest. */
const GROUP = "conversation-export-ingest";

export type ErrorItem = { readonly type: string; readonly message: string; readonly details: string | null };

/** An answer with its body parsed, and what is most often looked at in it. */
export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
  /** The records of a list; none in other answers. */
  readonly records: readonly Record<string, unknown>[];
  /** The link to the next page in any of the envelopes. */
  readonly next: string | null | undefined;
  /** The first error. */
  readonly error: ErrorItem | undefined;
};

export type CallOptions = {
  /** Without it the header Authorization is absent. */
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

/** The link of the envelope, undefined when there is none. */
const linkOf = ({ meta, ...own }: Envelope): string | null | undefined =>
  [meta, own]
    .flatMap((links) => [links?.next_page_uri, links?.next_page_url])
    .find((link) => link !== undefined);

/** One request; the body is sent as JSON unless it is a text. */
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

/** Like `call`, but throws unless the answer is 200. */
export const read = async (url: string, key: string, options: CallOptions = {}): Promise<Answer> => {
  const answer = await call(url, { key, ...options });
  if (answer.status !== 200) throw new Error(`${answer.status} for ${url}: ${answer.text.slice(0, 500)}`);
  return answer;
};

/** Waits until ingest has read all that was sent. */
export const ingestAll = (system: RunningSystem): Promise<void> => system.caughtUp(GROUP, 120_000);
