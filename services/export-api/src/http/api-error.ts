import { randomUUID } from "node:crypto";
import { isRetryable, visibleJson } from "@conversation-export/runtime";

/**
 * Every error (section 7 of the specification), by status; the OpenAPI document is made from it. `example`:
 * its `details`; `meets`: the operations that return it.
 */
export const ERRORS = {
  BadRequest: {
    status: 400,
    type: "bad_request",
    message: "The request is invalid",
    description: "A parameter or field is wrong, missing, unknown or given twice; `details` names each",
    example: "page_size: must be an integer from 100 to 10000; foo: unknown parameter",
    meets: "every",
  },
  Unauthorized: {
    status: 401,
    type: "unauthorized",
    message: "The API key cannot be verified",
    description: "The key is missing, unknown or revoked; `message` says how to send one",
    example: null,
    header: "WWW-Authenticate",
    meets: "key",
  },
  NotAuthorized: {
    status: 403,
    type: "authorization_error",
    message: "The API key does not allow this operation",
    description: "The key lacks the scope of this operation; `details` names it",
    example: "the scope export is required",
    header: "WWW-Authenticate",
    meets: "key",
  },
  NotFound: {
    status: 404,
    type: "resource_not_found",
    message: "The client acme does not exist",
    description:
      "There is no such path (`details` names the likely one), campaign or request; or the client of the key was deleted",
    example: null,
    meets: "key",
  },
  MethodNotAllowed: {
    status: 405,
    type: "bad_request",
    message: "The method is not allowed for this resource",
    description: "The path does not have this method",
    example: "method: DELETE is not one of GET, HEAD",
    header: "Allow",
    meets: "every",
  },
  NotAcceptable: {
    status: 406,
    type: "bad_request",
    message: "The answer is not made in this type",
    description: "The request accepts only Parquet, and the operation answers with JSON",
    example: "Accept: this operation answers with application/json",
    meets: "key",
  },
  RequestTimeout: {
    status: 408,
    type: "bad_request",
    message: "The request did not arrive in time",
    description: "The request did not arrive within 30 seconds, or its header within 10",
    example: null,
    meets: "every",
  },
  DuplicateResource: {
    status: 409,
    type: "duplicate_resource",
    message: "A resource with the same id already exists",
    description: "The `Idempotency-Key` was used with another body",
    example: "Idempotency-Key: was used with another body within the last 24 hours",
    meets: "some",
  },
  CursorExpired: {
    status: 410,
    type: "resource_not_found",
    message: "The cursor has expired",
    description: "The cursor of changes was not used for more than 30 days: start over without it",
    example: "cursor: begin again without it, and replace what you hold; deletions are kept for 30 days",
    meets: "some",
  },
  ContentTooLarge: {
    status: 413,
    type: "content_too_large",
    message: "The maximum request size is exceeded",
    description:
      "The body is longer than 4,000,000 bytes, of an erasure request 65,536; `details` has the limit and the length",
    example: "limit: 4000000 bytes; actual length: 4000001 bytes",
    meets: "every",
  },
  UnsupportedMediaType: {
    status: 415,
    type: "bad_request",
    message: "The body must be application/json",
    description: "The body is not JSON",
    example: "Content-Type: must be application/json, in UTF-8",
    meets: "body",
  },
  Unprocessable: {
    status: 422,
    type: "unprocessable_content",
    message: "The request cannot be followed",
    description: "The body is well-formed but cannot be followed; `details` says why",
    example: "body: an email or at least one identifier is required",
    meets: "body",
  },
  RateLimitExceeded: {
    status: 429,
    type: "rate_limit_exceeded",
    message: "Too many requests",
    description:
      "Too many requests, failed keys, pages at a time or erasure requests; `details` says what is allowed",
    example: "allowed: 10 requests per 1 second",
    header: "Retry-After",
    meets: "key",
  },
  HeaderTooLarge: {
    status: 431,
    type: "bad_request",
    message: "The request header is too large",
    description: "The header of the request is larger than 16 KiB",
    example: null,
    meets: "every",
  },
  InternalError: {
    status: 500,
    type: "internal_server_error",
    message: "Something went wrong inside the service",
    description: "The service failed; `details` has an `error_id`, which is in its log",
    example: "error_id: 2f1c7f0e-6f0a-4a52-9a3d-5f1f5a0c1b7e",
    meets: "every",
  },
  Unavailable: {
    status: 503,
    type: "internal_server_error",
    message: "The service is unavailable for a moment",
    description: "The service is overloaded, stopping, or cannot reach a server that it needs",
    example: "error_id: 2f1c7f0e-6f0a-4a52-9a3d-5f1f5a0c1b7e",
    header: "Retry-After",
    meets: "every",
  },
} as const;

export type ErrorName = keyof typeof ERRORS;
type ErrorType = (typeof ERRORS)[ErrorName]["type"];

/** The closed list of `type`. */
export const ERROR_TYPES: readonly ErrorType[] = [
  ...new Set(Object.values(ERRORS).map(({ type }): ErrorType => type)),
];

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
