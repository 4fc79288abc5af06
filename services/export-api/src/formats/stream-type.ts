import type { IncomingMessage } from "node:http";
import Negotiator from "negotiator";

export const JSON_TYPE = "application/json";
/** Names of the same format; an answer has the one that was asked for. */
export const LINES_TYPES = ["application/x-ndjson", "application/ndjson", "application/jsonl"] as const;
export const PARQUET_TYPE = "application/vnd.apache.parquet";

/** The type, of those that an operation has, in which a request wants a whole list; undefined for pages. */
export const streamTypeOf = (request: IncomingMessage, types: readonly string[]): string | undefined => {
  const chosen = new Negotiator(request).mediaType([JSON_TYPE, ...types]);
  return chosen === JSON_TYPE ? undefined : chosen;
};

/** true: the request takes Parquet and no JSON. */
export const wantsParquetOnly = (request: IncomingMessage): boolean => {
  const negotiator = new Negotiator(request);
  return (
    negotiator.mediaType([JSON_TYPE]) === undefined && negotiator.mediaType([PARQUET_TYPE]) !== undefined
  );
};
