import { randomUUID } from "node:crypto";
import type { Span } from "@conversation-export/runtime";
import type { PageEnd } from "../formats/stream-page.ts";

/** What is noted about a request while it is served, for its log line, metrics and span. */
export type RequestFacts = {
  /** By the clock of the app, in ms. */
  readonly startedAt: number;
  clientId?: string;
  keyId?: string;
  firstByteAt?: number;
  bytes: number;
  rows?: number;
  pageEnd?: PageEnd;
  errorId?: string;
  /** undefined when the request is not traced. */
  readonly span?: Span | undefined;
};

declare module "fastify" {
  interface FastifyRequest {
    facts: RequestFacts;
  }
}

const PLAIN_ID = /^[A-Za-z0-9._:+/=@-]{1,128}$/;

/** The caller's request id when it is short and plain, else a new one. */
export const requestIdOf = (given: string | string[] | undefined): string =>
  typeof given === "string" && PLAIN_ID.test(given) ? given : randomUUID();
