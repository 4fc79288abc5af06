import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from "zod-openapi";
import { renderError } from "../http/api-error.ts";
import { ERROR_TYPES, type ErrorName, ERRORS } from "../http/errors.ts";
import { API_PREFIX } from "../http/service-address.ts";
import type { Endpoint } from "../operations/endpoint.ts";
import { header, TAGS } from "./description.ts";

const ABOUT = `Exports the conversations of a customer-support chatbot platform, the messages in them and the end
users behind them, and takes two kinds of requests for the platform.

Every operation but this document needs a key: \`Authorization: Bearer <API_KEY>\`. A key has scopes; each operation
names the one that it needs. Every list comes in pages: follow the link in the body until it is null. HEAD is served
wherever GET is. Responses are compressed with zstd, br or gzip when \`Accept-Encoding\` asks for it.`;

const count = z.int().min(0).max(1_000_000);

const REQUEST_ID = {
  "X-Request-Id": header(
    "X-Request-Id",
    z.string(),
    "The id that the caller sent, when it is short and plain, else a new one; the log has it too",
  ),
};

const RATE_LIMIT = {
  "X-RateLimit-Limit": header(
    "X-RateLimit-Limit",
    count.optional(),
    "Requests allowed in the window that has the fewest left; absent without a limit, as the next two",
  ),
  "X-RateLimit-Remaining": header("X-RateLimit-Remaining", count.optional(), "Requests left in that window"),
  "X-RateLimit-Reset": header(
    "X-RateLimit-Reset",
    z.int().min(0).max(99_999_999_999).optional(),
    "When that window ends, in Unix seconds",
  ),
};

const ERROR_HEADERS = {
  "WWW-Authenticate": header(
    "WWW-Authenticate",
    z.string(),
    "The scheme `Bearer`, and what is wrong with the key (RFC 6750)",
  ),
  Allow: header("Allow", z.string(), "The methods that the path has"),
  "Retry-After": header("Retry-After", z.int().min(1).max(86_400), "Seconds to wait before the next attempt"),
};

/** Specification, section 7. */
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

const responseOf = (name: ErrorName): ZodOpenApiResponseObject => {
  const error = ERRORS[name];
  const example: unknown = JSON.parse(renderError({ ...error, details: error.example }));
  const headers = "header" in error ? { [error.header]: ERROR_HEADERS[error.header] } : {};
  return {
    id: name,
    description: error.description,
    headers: z.object({ ...REQUEST_ID, ...headers }),
    content: { "application/json": { schema: errorBody, example } },
  };
};

const ERROR_NAMES = Object.keys(ERRORS) as ErrorName[];
const RESPONSES = new Map(ERROR_NAMES.map((name) => [name, responseOf(name)]));

const errorsOf = (
  groups: readonly (typeof ERRORS)[ErrorName]["meets"][],
  names: readonly ErrorName[] = [],
): Record<string, ZodOpenApiResponseObject | undefined> =>
  Object.fromEntries(
    ERROR_NAMES.filter((name) => groups.includes(ERRORS[name].meets) || names.includes(name)).map((name) => [
      ERRORS[name].status,
      RESPONSES.get(name),
    ]),
  );

const operationOf = ({ scope, description }: Endpoint): ZodOpenApiOperationObject => {
  const { summary, operationId, tag, text, deprecated, requestParams, requestBody, success, errors } =
    description;
  return {
    operationId,
    summary,
    tags: [tag],
    security: [{ bearer: [] }],
    description: `${text}\n\nThe key needs the scope \`${scope}\`.`,
    ...(deprecated && { deprecated }),
    ...(requestParams && { requestParams }),
    ...(requestBody && { requestBody }),
    responses: {
      200: { ...success, headers: z.object({ ...REQUEST_ID, ...RATE_LIMIT, ...success.headers }) },
      ...errorsOf(requestBody === undefined ? ["every", "key"] : ["every", "key", "body"], errors),
    },
  };
};

const thisDocument: ZodOpenApiOperationObject = {
  operationId: "getOpenApi",
  summary: "This document",
  description: "The OpenAPI document of the export API; it needs no key.",
  tags: ["Reference"],
  security: [],
  responses: {
    200: {
      description: "The document",
      headers: z.object(REQUEST_ID),
      content: { "application/json": { schema: z.looseObject({ openapi: z.string() }) } },
    },
    ...errorsOf(["every"]),
  },
};

/** `rootUrl` serves those outside the prefix. */
const pathsOf = (endpoints: readonly Endpoint[], rootUrl: string): ZodOpenApiPathsObject => {
  const paths: ZodOpenApiPathsObject = {};
  for (const endpoint of endpoints) {
    const [first = ""] = endpoint.paths;
    const isBeside = !first.startsWith(`${API_PREFIX}/`);
    const path = (isBeside ? first : first.slice(API_PREFIX.length)).replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = {
      ...(isBeside && { servers: [{ url: rootUrl }] }),
      ...paths[path],
      [endpoint.method.toLowerCase()]: operationOf(endpoint),
    };
  }
  return { ...paths, "/openapi.json": { get: thisDocument } };
};

export const createOpenApi = (deps: {
  readonly endpoints: readonly Endpoint[];
  readonly publicBaseUrl?: string | undefined;
}): ReturnType<typeof createDocument> => {
  const baseUrl = deps.publicBaseUrl ?? API_PREFIX;
  const rootUrl = baseUrl.endsWith(API_PREFIX) ? baseUrl.slice(0, -API_PREFIX.length) : baseUrl;
  return createDocument(
    {
      openapi: "3.1.1",
      info: {
        title: "Conversation export",
        version: "2.0.0",
        description: ABOUT,
        contact: { name: "The operator of this service" },
      },
      servers: [{ url: baseUrl }],
      tags: [...TAGS],
      paths: pathsOf(deps.endpoints, rootUrl === "" ? "/" : rootUrl),
      components: {
        securitySchemes: {
          bearer: {
            type: "http",
            scheme: "bearer",
            description: "An API key, `Authorization: Bearer <API_KEY>`",
          },
        },
      },
    },
    {
      override: ({ jsonSchema, zodSchema, io }) => {
        // zod omits examples of transformed schemas on input.
        const examples = z.globalRegistry.get(zodSchema)?.examples;
        if (io === "input" && Array.isArray(examples)) jsonSchema.examples = examples;
        // Answers may gain fields.
        if (io === "output" && jsonSchema.additionalProperties === false)
          delete jsonSchema.additionalProperties;
      },
    },
  );
};
