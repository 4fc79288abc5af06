import type { PageEnd } from "./stream-page.ts";

/** What is noted about a request while it is served, for its log line and metrics. */
export type RequestFacts = {
  readonly startedAt: number;
  clientId?: string;
  firstByteAt?: number;
  bytes: number;
  rows?: number;
  pageEnd?: PageEnd;
  errorId?: string;
};

declare module "fastify" {
  interface FastifyRequest {
    facts: RequestFacts;
  }
}
