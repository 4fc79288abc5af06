import { randomUUID } from "node:crypto";
import { isRetryable } from "@conversation-export/runtime";

/** The types of section 7 of the specification. */
export const ERROR_TYPES = [
  "bad_request",
  "unauthorized",
  "authorization_error",
  "resource_not_found",
  "duplicate_resource",
  "content_too_large",
  "unprocessable_content",
  "rate_limit_exceeded",
  "internal_server_error",
] as const;
type ErrorType = (typeof ERROR_TYPES)[number];

/** An answer other than 200: status, the fields of the error body, and further headers. */
export type ErrorAnswer = {
  readonly status: number;
  readonly type: ErrorType;
  readonly message: string;
  readonly details: string | null;
  readonly headers: Readonly<Record<string, string>>;
};

/** Thrown by a handler to give an answer; nothing in it may come from inside the service. */
export class ApiError extends Error {
  readonly answer: ErrorAnswer;

  constructor(answer: Omit<ErrorAnswer, "headers"> & { headers?: ErrorAnswer["headers"] }) {
    super(answer.message);
    this.name = "ApiError";
    this.answer = { headers: {}, ...answer };
  }
}

const RETRY_AFTER_SECONDS = "5";
const CHALLENGE = 'Bearer realm="conversation-export"';

/** The body of section 7 of the specification, as JSON. */
export const renderError = (answer: Pick<ErrorAnswer, "type" | "message" | "details">): string =>
  JSON.stringify({ errors: [{ type: answer.type, message: answer.message, details: answer.details }] });

const MAX_PROBLEMS = 20;

const list = (problems: readonly string[]): string => {
  const more = problems.length - MAX_PROBLEMS;
  return (more > 0 ? [...problems.slice(0, MAX_PROBLEMS), `… and ${more} more`] : problems).join("; ");
};

/** 400; `problems` names every wrong or unknown part of the request, the first 20 of which are told. */
export const badRequest = (problems: readonly string[]): ApiError =>
  new ApiError({
    status: 400,
    type: "bad_request",
    message: "The request is invalid",
    details: list(problems),
  });

/** 401; `given` tells whether a credential came at all (RFC 6750: no error code when none did). */
export const unauthorized = (given: boolean): ApiError =>
  new ApiError({
    status: 401,
    type: "unauthorized",
    message: given ? "The API key cannot be verified" : "An API key is required",
    details: null,
    headers: { "www-authenticate": `${CHALLENGE}${given ? ', error="invalid_token"' : ""}` },
  });

/** 403 for a key that was not made for this operation (RFC 6750, 3.1). */
export const notAuthorized = (scope: string): ApiError =>
  new ApiError({
    status: 403,
    type: "authorization_error",
    message: "The API key does not allow this operation",
    details: `the scope ${scope} is required`,
    headers: { "www-authenticate": `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  });

/** 404 for a client that was deleted. */
export const clientMissing = (clientId: string): ApiError =>
  new ApiError({
    status: 404,
    type: "resource_not_found",
    message: `The client ${clientId} does not exist`,
    details: null,
  });

/** 404 for something that the request names; `details` names it. */
export const resourceMissing = (message: string, details: string | null = null): ApiError =>
  new ApiError({ status: 404, type: "resource_not_found", message, details });

/** 409 for a key of idempotency that stands for another request. */
export const duplicateResource = (details: string): ApiError =>
  new ApiError({
    status: 409,
    type: "duplicate_resource",
    message: "A resource with the same id already exists",
    details,
  });

/** 413; `actual` is the length in bytes, as announced or as far as it had arrived. The connection closes. */
export const contentTooLarge = (limit: number, actual: number): ApiError =>
  new ApiError({
    status: 413,
    type: "content_too_large",
    message: "The maximum request size is exceeded",
    details: `limit: ${limit} bytes; actual length: ${actual} bytes`,
    headers: { connection: "close" },
  });

/** 415 for a body that is not JSON. */
export const unsupportedMediaType = (details: string): ApiError =>
  new ApiError({
    status: 415,
    type: "bad_request",
    message: "The body must be application/json",
    details,
    headers: { accept: "application/json" },
  });

/** 422 for a request whose form is right and that cannot be followed all the same. */
export const unprocessable = (problems: readonly string[]): ApiError =>
  new ApiError({
    status: 422,
    type: "unprocessable_content",
    message: "The request cannot be followed",
    details: list(problems),
  });

/** 429; `rate` is the allowed rate in words, `retryAfter` whole seconds. */
export const rateLimitExceeded = (rate: string, retryAfter: number): ApiError =>
  new ApiError({
    status: 429,
    type: "rate_limit_exceeded",
    message: "Too many requests",
    details: `allowed: ${rate}`,
    headers: { "retry-after": String(retryAfter) },
  });

/** 404 for a path that leads nowhere. */
export const routeMissing = (): ApiError =>
  new ApiError({
    status: 404,
    type: "resource_not_found",
    message: "There is no such resource",
    details: null,
  });

/** 405 for a known path; `allowed` are the methods that it has. */
export const methodNotAllowed = (method: string, allowed: readonly string[]): ApiError =>
  new ApiError({
    status: 405,
    type: "bad_request",
    message: "The method is not allowed for this resource",
    details: `method: ${method} is not one of ${allowed.join(", ")}`,
    headers: { allow: allowed.join(", ") },
  });

/** Trouble of our own: 503 when a later attempt may succeed, else 500. `errorId` must stand in the log. */
export const internalError = (errorId: string, retryable: boolean): ErrorAnswer => ({
  status: retryable ? 503 : 500,
  type: "internal_server_error",
  message: retryable ? "The service is unavailable for a moment" : "Something went wrong inside the service",
  details: `error_id: ${errorId}`,
  headers: retryable ? { "retry-after": RETRY_AFTER_SECONDS } : {},
});

/**
 * Turns anything thrown into an answer. `errorId` is set when the error is ours and has to be logged under it.
 */
export const answerTo = (error: unknown): { answer: ErrorAnswer; errorId?: string } => {
  if (error instanceof ApiError) return { answer: error.answer };
  const status = statusOf(error);
  if (status === 415) {
    return { answer: unsupportedMediaType("Content-Type: must be application/json, in UTF-8").answer };
  }
  if (status !== undefined && status >= 400 && status < 500) {
    // Errors of the HTTP framework: their texts may repeat what was sent, so they stay inside.
    return {
      answer: {
        status,
        type: "bad_request",
        message: "The request is invalid",
        details: null,
        headers: {},
      },
    };
  }
  const errorId = randomUUID();
  return { answer: internalError(errorId, isRetryable(error)), errorId };
};

const statusOf = (error: unknown): number | undefined =>
  error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
