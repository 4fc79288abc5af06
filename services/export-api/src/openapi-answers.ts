import { z } from "zod";
import type { ZodOpenApiResponseObject } from "zod-openapi";
import {
  type ApiError,
  badRequest,
  clientMissing,
  contentTooLarge,
  duplicateResource,
  ERROR_TYPES,
  type ErrorAnswer,
  internalError,
  methodNotAllowed,
  notAuthorized,
  rateLimitExceeded,
  renderError,
  unauthorized,
  unprocessable,
  unsupportedMediaType,
} from "./api-error.ts";

const JSON_TYPE = "application/json";

/** The body of section 7 of the specification. */
const errorBody = z
  .object({
    errors: z
      .array(
        z.object({
          type: z.enum(ERROR_TYPES),
          message: z.string(),
          details: z.string().nullable().describe("Names what is wrong, or null"),
        }),
      )
      .min(1),
  })
  .meta({ id: "Error", description: "The body of every answer but a success" });

const header = <S extends z.ZodType>(id: string, schema: S, description: string): S =>
  schema.meta({ description, header: { id } });

const count = z.int().min(0).max(1_000_000);

type Headers = Readonly<Record<string, z.ZodType>>;

/** Headers of the interface by their names. Those that an answer may lack are optional. */
export const HEADERS = {
  requestId: {
    "X-Request-Id": header(
      "X-Request-Id",
      z.string(),
      "The request's own id when it came with a short and plain one, else a new one; it stands in the log",
    ),
  },
  rateLimit: {
    "X-RateLimit-Limit": header(
      "X-RateLimit-Limit",
      count.optional(),
      "Requests allowed in the window that has the fewest left; absent without a limit, as the next two",
    ),
    "X-RateLimit-Remaining": header(
      "X-RateLimit-Remaining",
      count.optional(),
      "Requests left in that window",
    ),
    "X-RateLimit-Reset": header(
      "X-RateLimit-Reset",
      z.int().min(0).max(99_999_999_999).optional(),
      "When that window ends, in Unix seconds",
    ),
  },
  retryAfter: {
    "Retry-After": header(
      "Retry-After",
      z.int().min(1).max(86_400),
      "Seconds to wait before the next attempt",
    ),
  },
  watermark: {
    "X-Export-Watermark": header(
      "X-Export-Watermark",
      z.string().meta({ format: "date-time" }).optional(),
      "Every event that reached the bus before this instant is readable, dead letters excepted; absent when unknown",
    ),
  },
  link: {
    Link: header(
      "Link",
      z.string().optional(),
      'The next page as `rel="next"`, the same as in the body; absent on the last page',
    ),
  },
  retirement: {
    Deprecation: header(
      "Deprecation",
      z.string().optional(),
      "Since when this version is deprecated, as `@` and Unix seconds; absent when it is not announced",
    ),
    Sunset: header(
      "Sunset",
      z.string().optional(),
      "When this version goes, as an HTTP date; absent when it is not announced",
    ),
    Link: header(
      "Legacy-Link",
      z.string(),
      'The operation of version 2 as `rel="successor-version"`, and the next page as `rel="next"`',
    ),
  },
  challenge: {
    "WWW-Authenticate": header(
      "WWW-Authenticate",
      z.string(),
      "The scheme `Bearer`, and what is wrong with the key (RFC 6750)",
    ),
  },
  allow: { Allow: header("Allow", z.string(), "The methods that the path has") },
  location: { Location: header("Location", z.string(), "Where the status of the request can be read") },
} as const satisfies Record<string, Headers>;

/** A response of the document for the answer that the service gives. */
const failure = (
  id: string,
  description: string,
  answer: ErrorAnswer | ApiError,
  headers: Headers = {},
): Record<string, ZodOpenApiResponseObject> => {
  const { status, ...rest } = "answer" in answer ? answer.answer : answer;
  const example: unknown = JSON.parse(renderError(rest));
  return {
    [status]: {
      id,
      description,
      headers: z.object({ ...HEADERS.requestId, ...headers }),
      content: { [JSON_TYPE]: { schema: errorBody, example } },
    },
  };
};

const ownWords = (status: number, message: string): ErrorAnswer => ({
  status,
  type: "bad_request",
  message,
  details: null,
  headers: {},
});

const ERROR_ID = "2f1c7f0e-6f0a-4a52-9a3d-5f1f5a0c1b7e";

/** What any request may be answered with, whoever sends it. */
export const ANY_REQUEST = {
  ...failure(
    "BadRequest",
    "The request is invalid; `details` names every unknown, repeated or wrong part of it",
    badRequest(["page_size: must be an integer from 100 to 10000", "foo: unknown parameter"]),
  ),
  ...failure(
    "MethodNotAllowed",
    "The path has other methods",
    methodNotAllowed("DELETE", ["GET", "HEAD"]),
    HEADERS.allow,
  ),
  ...failure(
    "RequestTimeout",
    "The request did not arrive in time",
    ownWords(408, "The request did not arrive in time"),
  ),
  ...failure(
    "ContentTooLarge",
    "The request is larger than 4,000,000 bytes; `details` states the limit and the length",
    contentTooLarge(4_000_000, 4_000_001),
  ),
  ...failure(
    "HeaderTooLarge",
    "The header of the request is too large",
    ownWords(431, "The request header is too large"),
  ),
  ...failure(
    "InternalError",
    "Something went wrong inside the service; `error_id` stands in its log",
    internalError(ERROR_ID, false),
  ),
  ...failure(
    "Unavailable",
    "The service is overloaded, stopping, or cannot reach what it needs: try again later",
    internalError(ERROR_ID, true),
    HEADERS.retryAfter,
  ),
};

/** What a request that needs a key may be answered with as well. */
export const WITH_KEY = {
  ...ANY_REQUEST,
  ...failure(
    "Unauthorized",
    "The key is missing or cannot be verified",
    unauthorized(true),
    HEADERS.challenge,
  ),
  ...failure(
    "NotAuthorized",
    "The key lacks the scope of this operation",
    notAuthorized("export"),
    HEADERS.challenge,
  ),
  ...failure(
    "NotFound",
    "The client of the key, or what the request names, does not exist",
    clientMissing("acme"),
  ),
  ...failure(
    "RateLimitExceeded",
    "Too many requests, or too many failed authentications; `details` states the allowed rate",
    rateLimitExceeded("10 requests in 1 second", 1),
    HEADERS.retryAfter,
  ),
};

/** What a request with a body may be answered with as well. */
export const WITH_BODY = {
  ...WITH_KEY,
  ...failure(
    "UnsupportedMediaType",
    "The body is not JSON",
    unsupportedMediaType("content-type: must be application/json"),
  ),
  ...failure(
    "Unprocessable",
    "The body has the right form and cannot be followed all the same",
    unprocessable(["campaign_key: no such campaign"]),
  ),
};

export const DUPLICATE = failure(
  "DuplicateResource",
  "The `Idempotency-Key` stands for a request with another body",
  duplicateResource("Idempotency-Key: was used for another body"),
);
