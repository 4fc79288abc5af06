import type { IncomingMessage } from "node:http";
import Negotiator from "negotiator";

export const JSON_TYPE = "application/json";
/** Names of the same format; an answer has the one that was asked for. */
export const LINES_TYPES = ["application/x-ndjson", "application/ndjson", "application/jsonl"] as const;

/** The name by which a request wants lines; undefined for pages. */
export const linesTypeOf = (request: IncomingMessage): string | undefined => {
  const chosen = new Negotiator(request).mediaType([JSON_TYPE, ...LINES_TYPES]);
  return chosen === JSON_TYPE ? undefined : chosen;
};
