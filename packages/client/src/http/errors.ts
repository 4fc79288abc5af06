import type { Error as ErrorBody } from "../interface/types.ts";
import { visibleText } from "./visible-text.ts";

export type ErrorType = ErrorBody["errors"][number]["type"];

export class ExportApiError extends Error {
  override readonly name = "ExportApiError";
  readonly status: number;
  /** Null: another server answered, such as a proxy. */
  readonly type: ErrorType | null;
  readonly details: string | null;
  /** Also in the service's log. */
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    answer: Pick<ExportApiError, "status" | "type" | "details" | "requestId" | "retryAfterMs">,
  ) {
    super(visibleText(message));
    this.status = answer.status;
    this.type = answer.type;
    this.details = answer.details;
    this.requestId = answer.requestId;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

/** Not reached, or the answer broke off. */
export class ExportConnectionError extends Error {
  override readonly name = "ExportConnectionError";
  /** It certainly never arrived. */
  readonly isUnsent: boolean;
  /** A repeat would fail too, as with an untrusted certificate. */
  readonly isLasting: boolean;

  constructor(
    message: string,
    options: { readonly isUnsent: boolean; readonly isLasting?: boolean; readonly cause?: unknown },
  ) {
    super(visibleText(message), { cause: options.cause });
    this.isUnsent = options.isUnsent;
    this.isLasting = options.isLasting ?? false;
  }
}

/** An unexpected response, or a link or redirect to another host. */
export class ExportAnswerError extends Error {
  override readonly name = "ExportAnswerError";

  constructor(message: string) {
    super(visibleText(message));
  }
}

/** A smaller page may help. */
export class LongAnswerError extends ExportAnswerError {
  constructor(maxBytes: number) {
    super(`the answer has more than ${maxBytes} bytes`);
  }
}

const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

export const isTransient = (error: unknown): boolean =>
  (error instanceof ExportConnectionError && !error.isLasting) ||
  (error instanceof ExportApiError && RETRYABLE.has(error.status));

/** Certainly, so a repeat is safe. */
export const hadNoEffect = (error: unknown): boolean =>
  error instanceof ExportConnectionError
    ? error.isUnsent
    : error instanceof ExportApiError && error.status === 429;

const MAX_SAID = 1_000;

const parseBody = (text: string): Partial<ErrorBody["errors"][number]> | undefined => {
  try {
    const { errors } = JSON.parse(text) as { errors?: Partial<ErrorBody["errors"][number]>[] };
    const [error] = Array.isArray(errors) ? errors : [];
    return typeof error?.message === "string" ? error : undefined;
  } catch {
    return undefined;
  }
};

export const apiError = (
  answer: { readonly status: number; readonly headers: Headers },
  text: string,
): ExportApiError => {
  const error = parseBody(text);
  const details = typeof error?.details === "string" ? error.details : null;
  // A foreign page may echo the request.
  const other = `another server answered, with ${text.length} characters of ${answer.headers.get("content-type") ?? "no type"}`;
  const said = error === undefined ? other : `${error.message}${details === null ? "" : ` (${details})`}`;
  const message = `${answer.status}: ${visibleText(said, MAX_SAID)}`;
  return new ExportApiError(message, {
    status: answer.status,
    type: error?.type ?? null,
    details,
    requestId: answer.headers.get("x-request-id"),
    retryAfterMs: retryAfter(answer.headers.get("retry-after")),
  });
};

/** Null: neither seconds nor an HTTP date. */
const retryAfter = (value: string | null): number | null => {
  if (value === null) return null;
  if (/^\s*\d+\s*$/.test(value)) return Number(value) * 1_000;
  const at = new Date(value);
  // JavaScript accepts more forms than HTTP.
  return Number.isNaN(at.getTime()) || at.toUTCString() !== value
    ? null
    : Math.max(0, at.getTime() - Date.now());
};
