import type { Span } from "@conversation-export/runtime";
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
  /** There while the request is recorded. */
  readonly span?: Span | undefined;
};

declare module "fastify" {
  interface FastifyRequest {
    facts: RequestFacts;
  }
}
