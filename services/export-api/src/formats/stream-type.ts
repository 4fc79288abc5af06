import type { IncomingMessage } from "node:http";
import Negotiator from "negotiator";

export const JSON_TYPE = "application/json";
export const LINES_TYPES = ["application/x-ndjson", "application/ndjson", "application/jsonl"] as const;
export const PARQUET_TYPE = "application/vnd.apache.parquet";

/** Without parameters but `q`: no type that is offered has one. */
const negotiatorOf = ({ headers: { accept } }: IncomingMessage): Negotiator =>
  new Negotiator({ headers: { accept: accept?.replace(/;\s*(?!q\s*=)[^;,]*/gi, "") } });

/** undefined for pages. */
export const streamTypeOf = (request: IncomingMessage, types: readonly string[]): string | undefined => {
  const chosen = negotiatorOf(request).mediaType([JSON_TYPE, ...types]);
  return chosen === JSON_TYPE ? undefined : chosen;
};

export const wantsParquetOnly = (request: IncomingMessage): boolean => {
  const negotiator = negotiatorOf(request);
  return (
    negotiator.mediaType([JSON_TYPE]) === undefined && negotiator.mediaType([PARQUET_TYPE]) !== undefined
  );
};
