import { randomUUID } from "node:crypto";
import { isRetryable, visibleJson } from "@conversation-export/runtime";
import { type ErrorName, ERRORS, type ErrorType } from "./errors.ts";

/** An answer other than 200: status, the fields of the error body, and further headers. */
export type ErrorAnswer = {
  readonly status: number;
  readonly type: ErrorType;
  readonly message: string;
  readonly details: string | null;
  readonly headers: Readonly<Record<string, string>>;
};

/** Thrown by a handler to give an answer. Its texts go to the caller: they hold nothing internal. */
export class ApiError extends Error {
  readonly answer: ErrorAnswer;

  constructor(name: ErrorName, given: Partial<Pick<ErrorAnswer, "message" | "details" | "headers">> = {}) {
    const answer = answerOf(name, given);
    super(answer.message);
    this.name = "ApiError";
    this.answer = answer;
  }
}

/** The answer of this name; without a message of its own it has that of the table. */
export const answerOf = (
  name: ErrorName,
  given: Partial<Pick<ErrorAnswer, "message" | "details" | "headers">> = {},
): ErrorAnswer => {
  const { status, type, message } = ERRORS[name];
  return { status, type, message, details: null, headers: {}, ...given };
};

/** The body of section 7 of the specification, as JSON. */
export const renderError = ({
  type,
  message,
  details,
}: Pick<ErrorAnswer, "type" | "message" | "details">): string =>
  visibleJson(JSON.stringify({ errors: [{ type, message, details }] }));

const RETRY_AFTER_SECONDS = "5";
const CHALLENGE = 'Bearer realm="conversation-export"';
const MAX_PROBLEMS = 20;

const list = (problems: readonly string[]): string => {
  const more = problems.length - MAX_PROBLEMS;
  return (more > 0 ? [...problems.slice(0, MAX_PROBLEMS), `… and ${more} more`] : problems).join("; ");
};

/** 400; `problems` names every wrong or unknown part of the request. The details hold the first 20. */
export const badRequest = (problems: readonly string[]): ApiError =>
  new ApiError("BadRequest", { details: list(problems) });

const HOW = "send the header Authorization: Bearer <key>";
/** What is wrong with a credential; `elsewhere`: only `X-API-Key` was sent. */
const CREDENTIALS = {
  missing: `An API key is required: ${HOW}`,
  elsewhere: `An API key is required: ${HOW}, not X-API-Key`,
  malformed: `The API key cannot be verified: ${HOW}`,
  unknown: ERRORS.Unauthorized.message,
} as const;

/** 401 that says how to send a key (RFC 6750: no error code without a credential). */
export const unauthorized = (what: keyof typeof CREDENTIALS): ApiError => {
  const given = what === "malformed" || what === "unknown";
  return new ApiError("Unauthorized", {
    message: CREDENTIALS[what],
    headers: { "www-authenticate": `${CHALLENGE}${given ? ', error="invalid_token"' : ""}` },
  });
};

/** 403 for a key without the scope of the operation (RFC 6750, 3.1). */
export const notAuthorized = (scope: string): ApiError =>
  new ApiError("NotAuthorized", {
    details: `the scope ${scope} is required`,
    headers: { "www-authenticate": `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  });

/** 404 for a key of a deleted client. */
export const clientMissing = (clientId: string): ApiError =>
  new ApiError("NotFound", { message: `The client ${clientId} does not exist` });

/** 404 for something that the request names. */
export const resourceMissing = (message: string, details: string | null = null): ApiError =>
  new ApiError("NotFound", { message, details });

/** 404 for a path without an operation; `meant`: the path that is most like it. */
export const routeMissing = (meant: string | undefined): ApiError =>
  new ApiError("NotFound", {
    message: "There is no such resource",
    details: meant === undefined ? null : `did you mean ${meant}?`,
  });

/** 405 for a known path; `allowed` are the methods that it has. */
export const methodNotAllowed = (method: string, allowed: readonly string[]): ApiError =>
  new ApiError("MethodNotAllowed", {
    details: `method: ${method} is not one of ${allowed.join(", ")}`,
    headers: { allow: allowed.join(", ") },
  });

/** 406 for an operation that has JSON alone. */
export const notAcceptable = (): ApiError =>
  new ApiError("NotAcceptable", { details: "Accept: this operation answers with application/json" });

/** 409 for an idempotency key that was used for another request. */
export const duplicateResource = (details: string): ApiError =>
  new ApiError("DuplicateResource", { details });

/** 410 for a cursor of changes that was not used for too long. */
export const cursorExpired = (days: number): ApiError =>
  new ApiError("CursorExpired", {
    details: `cursor: begin again without it, and replace what you hold; deletions are kept for ${days} days`,
  });

/** 413; `actual` is the length in bytes, as announced or as far as it has arrived. The connection closes. */
export const contentTooLarge = (limit: number, actual: number): ApiError =>
  new ApiError("ContentTooLarge", {
    details: `limit: ${limit} bytes; actual length: ${actual} bytes`,
    headers: { connection: "close" },
  });

/** 415 for a body that is not JSON. */
export const unsupportedMediaType = (details: string): ApiError =>
  new ApiError("UnsupportedMediaType", { details, headers: { accept: "application/json" } });

/** 422 for a request of the right form that cannot be followed. */
export const unprocessable = (problems: readonly string[]): ApiError =>
  new ApiError("Unprocessable", { details: list(problems) });

/** 429; `rate` is the allowed rate in words, `retryAfter` whole seconds. */
export const rateLimitExceeded = (rate: string, retryAfter: number): ApiError =>
  new ApiError("RateLimitExceeded", {
    details: `allowed: ${rate}`,
    headers: { "retry-after": String(retryAfter) },
  });

/**
 * 429 for what a client may have of something; `details` name the bound and what counts, `retryAfter` is in
 * seconds.
 */
export const quotaExceeded = (details: string, retryAfter: number): ApiError =>
  new ApiError("RateLimitExceeded", { details, headers: { "retry-after": String(retryAfter) } });

/** 429 for a key that is not looked up now; `retryAfter` is in seconds. No fault of the service: 5xx alert. */
export const keyUnchecked = (retryAfter: number): ApiError =>
  quotaExceeded("too many look-ups of unknown keys", retryAfter);

/** 503 when a later attempt may succeed, else 500. The caller logs the error under `errorId`. */
const internalError = (errorId: string, retryable: boolean): ErrorAnswer =>
  answerOf(retryable ? "Unavailable" : "InternalError", {
    details: `error_id: ${errorId}`,
    headers: retryable ? { "retry-after": RETRY_AFTER_SECONDS } : {},
  });

/**
 * The answer to anything thrown. With an `errorId` the fault is the service's, and has to be logged under it.
 */
export const answerTo = (error: unknown): { answer: ErrorAnswer; errorId?: string } => {
  if (error instanceof ApiError) return { answer: error.answer };
  const status = statusOf(error);
  if (status === 415) {
    return { answer: unsupportedMediaType("Content-Type: must be application/json, in UTF-8").answer };
  }
  if (status !== undefined && status >= 400 && status < 500) {
    // The texts of Fastify's errors may repeat what was sent, so they are not passed on.
    return { answer: { ...answerOf("BadRequest"), status } };
  }
  const errorId = randomUUID();
  return { answer: internalError(errorId, isRetryable(error)), errorId };
};

const statusOf = (error: unknown): number | undefined =>
  error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
