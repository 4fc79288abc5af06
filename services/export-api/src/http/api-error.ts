import { randomUUID } from "node:crypto";
import { isRetryable, visibleJson } from "@conversation-export/runtime";
import { type ErrorName, ERRORS, type ErrorType } from "./errors.ts";

export type ErrorAnswer = {
  readonly status: number;
  readonly type: ErrorType;
  readonly message: string;
  readonly details: string | null;
  readonly headers: Readonly<Record<string, string>>;
};

/** Texts go to the caller: nothing internal. */
export class ApiError extends Error {
  readonly answer: ErrorAnswer;

  constructor(name: ErrorName, given: Partial<Pick<ErrorAnswer, "message" | "details" | "headers">> = {}) {
    const answer = answerOf(name, given);
    super(answer.message);
    this.name = "ApiError";
    this.answer = answer;
  }
}

export const answerOf = (
  name: ErrorName,
  given: Partial<Pick<ErrorAnswer, "message" | "details" | "headers">> = {},
): ErrorAnswer => {
  const { status, type, message } = ERRORS[name];
  return { status, type, message, details: null, headers: {}, ...given };
};

/** Specification, section 7. */
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

export const badRequest = (problems: readonly string[]): ApiError =>
  new ApiError("BadRequest", { details: list(problems) });

const HOW = "send the header Authorization: Bearer <key>";
/** `elsewhere`: only `X-API-Key` was sent. */
const CREDENTIALS = {
  missing: `An API key is required: ${HOW}`,
  elsewhere: `An API key is required: ${HOW}, not X-API-Key`,
  malformed: `The API key cannot be verified: ${HOW}`,
  unknown: ERRORS.Unauthorized.message,
} as const;

export const unauthorized = (what: keyof typeof CREDENTIALS): ApiError => {
  const given = what === "malformed" || what === "unknown";
  return new ApiError("Unauthorized", {
    message: CREDENTIALS[what],
    headers: { "www-authenticate": `${CHALLENGE}${given ? ', error="invalid_token"' : ""}` },
  });
};

/** RFC 6750, 3.1. */
export const notAuthorized = (scope: string): ApiError =>
  new ApiError("NotAuthorized", {
    details: `the scope ${scope} is required`,
    headers: { "www-authenticate": `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  });

export const clientMissing = (clientId: string): ApiError =>
  new ApiError("NotFound", { message: `The client ${clientId} does not exist` });

export const resourceMissing = (message: string, details: string | null = null): ApiError =>
  new ApiError("NotFound", { message, details });

/** `meant`: the most similar path. */
export const routeMissing = (meant: string | undefined): ApiError =>
  new ApiError("NotFound", {
    message: "There is no such resource",
    details: meant === undefined ? null : `did you mean ${meant}?`,
  });

export const methodNotAllowed = (method: string, allowed: readonly string[]): ApiError =>
  new ApiError("MethodNotAllowed", {
    details: `method: ${method} is not one of ${allowed.join(", ")}`,
    headers: { allow: allowed.join(", ") },
  });

export const notAcceptable = (): ApiError =>
  new ApiError("NotAcceptable", { details: "Accept: this operation answers with application/json" });

export const duplicateResource = (details: string): ApiError =>
  new ApiError("DuplicateResource", { details });

export const cursorExpired = (days: number): ApiError =>
  new ApiError("CursorExpired", {
    details: `cursor: begin again without it, and replace what you hold; deletions are kept for ${days} days`,
  });

/** `actual`: bytes announced or received. */
export const contentTooLarge = (limit: number, actual: number): ApiError =>
  new ApiError("ContentTooLarge", {
    details: `limit: ${limit} bytes; actual length: ${actual} bytes`,
    headers: { connection: "close" },
  });

export const unsupportedMediaType = (details: string): ApiError =>
  new ApiError("UnsupportedMediaType", { details, headers: { accept: "application/json" } });

export const unprocessable = (problems: readonly string[]): ApiError =>
  new ApiError("Unprocessable", { details: list(problems) });

/** `retryAfter` in seconds. */
export const quotaExceeded = (details: string, retryAfter: number): ApiError =>
  new ApiError("RateLimitExceeded", { details, headers: { "retry-after": String(retryAfter) } });

/** `rate` in words, `retryAfter` in seconds. */
export const rateLimitExceeded = (rate: string, retryAfter: number): ApiError =>
  quotaExceeded(`allowed: ${rate}`, retryAfter);

/** 429, because a 5xx would raise an alert. */
export const keyUnchecked = (retryAfter: number): ApiError =>
  quotaExceeded("too many look-ups of unknown keys", retryAfter);

/** 503: a later attempt may succeed. */
const internalError = (errorId: string, retryable: boolean): ErrorAnswer =>
  answerOf(retryable ? "Unavailable" : "InternalError", {
    details: `error_id: ${errorId}`,
    headers: retryable ? { "retry-after": RETRY_AFTER_SECONDS } : {},
  });

/** The caller logs errors with an `errorId`. */
export const answerTo = (error: unknown): { answer: ErrorAnswer; errorId?: string } => {
  if (error instanceof ApiError) return { answer: error.answer };
  const status = statusOf(error);
  if (status === 415) {
    return { answer: unsupportedMediaType("Content-Type: must be application/json, in UTF-8").answer };
  }
  if (status !== undefined && status >= 400 && status < 500) {
    // Fastify's texts may repeat what was sent.
    return { answer: { ...answerOf("BadRequest"), status } };
  }
  const errorId = randomUUID();
  return { answer: internalError(errorId, isRetryable(error)), errorId };
};

const statusOf = (error: unknown): number | undefined =>
  error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
