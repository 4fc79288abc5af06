import type { ApiClient, LimitName, Scope } from "@conversation-export/warehouse";
import type { AccessWatch } from "../admission/access-watch.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Description } from "../openapi/description.ts";

/** `signal` aborts when the caller leaves early or its key is no longer allowed. */
export type Call = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly client: ApiClient;
  readonly access: AccessWatch;
  readonly signal: AbortSignal;
};

/** HEAD is served wherever GET is. */
export type Endpoint = {
  readonly method: "GET" | "POST";
  /** The OpenAPI document names the first. */
  readonly paths: readonly string[];
  readonly scope: Scope;
  readonly limit: LimitName;
  /** For reading pages, or for taking bodies in. */
  readonly slot: "page" | "body";
  /** Types in which the whole list is streamed on request. */
  readonly streams?: readonly string[];
  /** Of every answer, errors included. */
  readonly headers?: (request: FastifyRequest) => Readonly<Record<string, string>>;
  readonly description: Description;
  /** Has answered when it resolves. @throws ApiError or ServiceError, only before the first byte */
  readonly serve: (call: Call) => Promise<void>;
};
