import type { ApiClient, LimitName, Scope } from "@conversation-export/warehouse";
import type { FastifyReply, FastifyRequest } from "fastify";

/** An authenticated and admitted request. `signal` aborts when the caller goes away before the end. */
export type Call = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly client: ApiClient;
  readonly signal: AbortSignal;
};

/** One operation of the interface. HEAD is served wherever GET is. */
export type Endpoint = {
  readonly name: string;
  readonly method: "GET" | "POST";
  /** Whole paths, each leading to the same operation. */
  readonly paths: readonly string[];
  readonly scope: Scope;
  readonly limit: LimitName;
  /** Which of the slots it holds while it is served: those for reading pages, or those for taking bodies in. */
  readonly slot: "page" | "body";
  /** Headers of every answer of this operation, errors included. */
  readonly headers?: (request: FastifyRequest) => Readonly<Record<string, string>>;
  /** Has answered when it resolves. Throws `ApiError` or `ServiceError` before the first byte. */
  readonly serve: (call: Call) => Promise<void>;
};
