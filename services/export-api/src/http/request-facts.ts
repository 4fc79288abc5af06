import { randomUUID } from "node:crypto";
import type { Span } from "@conversation-export/runtime";
import type { PageEnd } from "../formats/stream-page.ts";

export type RequestFacts = {
  /** Ms by the app's clock. */
  readonly startedAt: number;
  clientId?: string;
  keyId?: string;
  firstByteAt?: number;
  bytes: number;
  rows?: number;
  pageEnd?: PageEnd;
  errorId?: string;
  /** undefined: not traced. */
  readonly span?: Span | undefined;
};

declare module "fastify" {
  interface FastifyRequest {
    facts: RequestFacts;
  }
}

const PLAIN_ID = /^[A-Za-z0-9._:+/=@-]{1,128}$/;

/** The caller's, if short and plain. */
export const requestIdOf = (given: string | string[] | undefined): string =>
  typeof given === "string" && PLAIN_ID.test(given) ? given : randomUUID();
