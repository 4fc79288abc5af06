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
export type ErrorType = (typeof ERRORS)[ErrorName]["type"];

/** The closed list of `type`. */
export const ERROR_TYPES: readonly ErrorType[] = [
  ...new Set(Object.values(ERRORS).map(({ type }): ErrorType => type)),
];
