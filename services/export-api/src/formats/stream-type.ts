import type { IncomingMessage } from "node:http";
import Negotiator from "negotiator";

export const JSON_TYPE = "application/json";
export const LINES_TYPES = ["application/x-ndjson", "application/ndjson", "application/jsonl"] as const;
export const PARQUET_TYPE = "application/vnd.apache.parquet";

/** undefined for pages. */
export const streamTypeOf = (request: IncomingMessage, types: readonly string[]): string | undefined => {
  const chosen = new Negotiator(request).mediaType([JSON_TYPE, ...types]);
  return chosen === JSON_TYPE ? undefined : chosen;
};

export const wantsParquetOnly = (request: IncomingMessage): boolean => {
  const negotiator = new Negotiator(request);
  return (
    negotiator.mediaType([JSON_TYPE]) === undefined && negotiator.mediaType([PARQUET_TYPE]) !== undefined
  );
};
