import type { ApiClient, LimitName, Scope } from "@conversation-export/warehouse";
import type { AccessWatch } from "../admission/access-watch.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Description } from "../openapi/description.ts";

/**
 * An authenticated and admitted request. `signal` aborts when the caller disconnects before the end, or its key is no
 * longer allowed.
 */
export type Call = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly client: ApiClient;
  readonly access: AccessWatch;
  readonly signal: AbortSignal;
};

/** One operation of the export API. HEAD is served wherever GET is. */
export type Endpoint = {
  readonly method: "GET" | "POST";
  /** Whole paths, each leading to the same operation. The OpenAPI document names the first. */
  readonly paths: readonly string[];
  readonly scope: Scope;
  readonly limit: LimitName;
  /** The kind of slot that a request holds while it is served: for reading pages, or for taking bodies in. */
  readonly slot: "page" | "body";
  /** Types in which the whole list is streamed to who asks for one of them; none by default. */
  readonly streams?: readonly string[];
  /** Headers of every answer of this operation, errors included. */
  readonly headers?: (request: FastifyRequest) => Readonly<Record<string, string>>;
  readonly description: Description;
  /**
   * Has answered when it resolves.
   * @throws ApiError or ServiceError, only before the first byte
   */
  readonly serve: (call: Call) => Promise<void>;
};
