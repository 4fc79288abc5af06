import type { Error as ErrorBody } from "../interface/types.ts";
import { visibleText } from "./visible-text.ts";

/** The types of errors that the export API has. */
export type ErrorType = ErrorBody["errors"][number]["type"];

/** The service answered with an error. */
export class ExportApiError extends Error {
  override readonly name = "ExportApiError";
  /** The HTTP status. */
  readonly status: number;
  /** The type of the first error in the body; null when another server answered, such as a proxy. */
  readonly type: ErrorType | null;
  readonly details: string | null;
  /** `X-Request-Id`, which the log of the service has too. */
  readonly requestId: string | null;
  /** `Retry-After` in milliseconds. */
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

/** The service was not reached, or the connection broke before the answer was whole. */
export class ExportConnectionError extends Error {
  override readonly name = "ExportConnectionError";
  /** True when the request certainly never arrived. */
  readonly isUnsent: boolean;
  /** True when the next attempt would end in the same way, as with a certificate that is not trusted. */
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

/** An answer that the export API does not give: another form, another count, a link or redirect elsewhere. */
export class ExportAnswerError extends Error {
  override readonly name = "ExportAnswerError";

  constructor(message: string) {
    super(visibleText(message));
  }
}

const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** True when the same request may succeed later. */
export const isTransient = (error: unknown): boolean =>
  (error instanceof ExportConnectionError && !error.isLasting) ||
  (error instanceof ExportApiError && RETRYABLE.has(error.status));

/** True when the request certainly had no effect, so that repeating it cannot double one. */
export const hadNoEffect = (error: unknown): boolean =>
  error instanceof ExportConnectionError
    ? error.isUnsent
    : error instanceof ExportApiError && error.status === 429;

/** Characters of what the service says. */
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

/** An answer with an error status as an error. `now`: ms since the epoch. */
export const apiError = (
  answer: { readonly status: number; readonly headers: Headers },
  text: string,
  now: number,
): ExportApiError => {
  const error = parseBody(text);
  const details = typeof error?.details === "string" ? error.details : null;
  // Another server's page may repeat whatever was sent.
  const other = `another server answered, with ${text.length} characters of ${answer.headers.get("content-type") ?? "no type"}`;
  const said = error === undefined ? other : `${error.message}${details === null ? "" : ` (${details})`}`;
  const message = `${answer.status}: ${visibleText(said, MAX_SAID)}`;
  return new ExportApiError(message, {
    status: answer.status,
    type: error?.type ?? null,
    details,
    requestId: answer.headers.get("x-request-id"),
    retryAfterMs: retryAfter(answer.headers.get("retry-after"), now),
  });
};

/** `Retry-After` in ms from `now`, given as seconds or as a date of HTTP; null when it is neither. */
export const retryAfter = (value: string | null, now: number): number | null => {
  if (value === null) return null;
  if (/^\s*\d+\s*$/.test(value)) return Number(value) * 1_000;
  const at = new Date(value);
  // Of all that JavaScript takes for dates, HTTP has this form, always in GMT.
  return Number.isNaN(at.getTime()) || at.toUTCString() !== value ? null : Math.max(0, at.getTime() - now);
};
