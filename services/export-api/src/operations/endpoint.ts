import type { ApiClient, LimitName, Scope } from "@conversation-export/warehouse";
import type { AccessMonitor } from "../admission/access-monitor.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Description } from "../openapi/description.ts";

/** `signal` aborts when the caller leaves or loses its right. */
export type Call = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly client: ApiClient;
  readonly access: AccessMonitor;
  readonly signal: AbortSignal;
};

/** HEAD is served wherever GET is. */
export type Endpoint = {
  readonly method: "GET" | "POST";
  /** OpenAPI names the first. */
  readonly paths: readonly string[];
  readonly scope: Scope;
  readonly limit: LimitName;
  readonly slot: "page" | "body";
  /** Media types that stream the whole list. */
  readonly streams?: readonly string[];
  readonly headers?: (request: FastifyRequest) => Readonly<Record<string, string>>;
  readonly description: Description;
  /** @throws ApiError or ServiceError, only before the first byte */
  readonly serve: (call: Call) => Promise<void>;
};
