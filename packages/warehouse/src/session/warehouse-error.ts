import { ClickHouseError } from "@clickhouse/client";
import { ServiceError } from "@conversation-export/runtime";

export type WarehouseErrorCode =
  | "warehouse_unavailable"
  | "warehouse_refused_data"
  | "warehouse_query_failed";

/** `warehouse_refused_data`: the rows themselves are at fault. */
export class WarehouseError extends ServiceError {
  /** ClickHouse's, such as MEMORY_LIMIT_EXCEEDED, or the socket's, such as ECONNREFUSED. */
  readonly causeName: string;
  /** Address; undefined: a single server. */
  readonly server: string | undefined;

  constructor(
    code: WarehouseErrorCode,
    causeName: string,
    retryable: boolean,
    cause: unknown,
    server?: string,
  ) {
    super(code, `${code}: ${causeName}${server === undefined ? "" : ` (${server})`}`, { retryable, cause });
    this.name = "WarehouseError";
    this.causeName = causeName;
    this.server = server;
  }
}

// For truncated rows, but also when ClickHouse's own connection to a shard breaks.
const ENDS_TOO_EARLY: readonly string[] = ["ATTEMPT_TO_READ_AFTER_EOF", "CANNOT_READ_ALL_DATA"];

/** On a cluster a shard may be the cause. */
export const endsTooEarly = (error: WarehouseError): boolean => ENDS_TOO_EARLY.includes(error.causeName);

// By the rows of an INSERT. All others may pass with time, or after an operator has stepped in.
const DATA_ERRORS: ReadonlySet<string> = new Set([
  "VIOLATED_CONSTRAINT",
  ...ENDS_TOO_EARLY,
  "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
  "CANNOT_PARSE_TEXT",
  "CANNOT_PARSE_NUMBER",
  "CANNOT_PARSE_DATETIME",
  "INCORRECT_DATA",
  "INCORRECT_NUMBER_OF_COLUMNS",
  "TOO_LARGE_STRING_SIZE",
  "TOO_LARGE_ARRAY_SIZE",
  "ARGUMENT_OUT_OF_BOUND",
  "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
  "UNKNOWN_ELEMENT_OF_ENUM",
]);

// A retry fails in the same way.
const QUERY_BUGS: ReadonlySet<string> = new Set([
  "SYNTAX_ERROR",
  "UNKNOWN_IDENTIFIER",
  "UNKNOWN_FUNCTION",
  "TYPE_MISMATCH",
  "ILLEGAL_TYPE_OF_ARGUMENT",
  "NUMBER_OF_ARGUMENTS_DOESNT_MATCH",
  "BAD_ARGUMENTS",
  "BAD_QUERY_PARAMETER",
  "UNKNOWN_SETTING",
]);

// Only an operator can fix them. Retryable, since ingest waits for that.
const SETUP_ERRORS: ReadonlySet<string> = new Set(["ACCESS_DENIED", "UNKNOWN_TABLE", "UNKNOWN_DATABASE"]);

// Of a user, a profile or the server: the same work meets them again.
const LIMIT_ERRORS: ReadonlySet<string> = new Set([
  "MEMORY_LIMIT_EXCEEDED",
  "TIMEOUT_EXCEEDED",
  "TOO_SLOW",
  "TOO_MANY_ROWS",
  "TOO_MANY_BYTES",
  "TOO_MANY_ROWS_OR_BYTES",
  "SET_SIZE_LIMIT_EXCEEDED",
]);

// Of the socket or the HTTP client.
const AWAY_ERRORS: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "ETIMEDOUT",
  "EPIPE",
  "TimeoutError",
]);

export const timedOut = (server?: string): WarehouseError =>
  new WarehouseError("warehouse_unavailable", "TimeoutError", true, undefined, server);

export const unexpectedAnswer = (): WarehouseError =>
  new WarehouseError("warehouse_unavailable", "UNEXPECTED_ANSWER", true, undefined);

/** No server answers, or not in time. */
export const isAwayError = (error: unknown): boolean =>
  error instanceof WarehouseError && AWAY_ERRORS.has(error.causeName);

/** The connection was closed before or within the answer. */
export const isReset = (error: unknown): boolean => ["ECONNRESET", "EPIPE"].includes(causeNameOf(error));

/** A grant, a table or the database is missing. */
export const isSetupError = (error: unknown): error is WarehouseError =>
  error instanceof WarehouseError && SETUP_ERRORS.has(error.causeName);

/** More memory or time than ClickHouse allows. */
export const isLimitError = (error: unknown): error is WarehouseError =>
  error instanceof WarehouseError && LIMIT_ERRORS.has(error.causeName);

function causeNameOf(error: unknown): string {
  if (error instanceof ClickHouseError) return error.type ?? `CODE_${error.code}`;
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  if (!(error instanceof Error)) return "unknown";
  // The client marks a timed-out request only by this message.
  return error.message === "Timeout error." ? "TimeoutError" : error.name;
}

function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
}

/** By type or code, not by message, except for a timed-out request. */
export function toWarehouseError(error: unknown, server?: string): WarehouseError {
  if (error instanceof WarehouseError) return error;
  const name = causeNameOf(error);
  if (isBug(error) && name === (error as Error).name) {
    return new WarehouseError("warehouse_query_failed", name, false, error, server);
  }
  if (DATA_ERRORS.has(name)) return new WarehouseError("warehouse_refused_data", name, false, error, server);
  if (QUERY_BUGS.has(name)) return new WarehouseError("warehouse_query_failed", name, false, error, server);
  return new WarehouseError("warehouse_unavailable", name, true, error, server);
}
