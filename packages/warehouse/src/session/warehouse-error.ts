import { ClickHouseError } from "@clickhouse/client";
import { ServiceError } from "@conversation-export/runtime";

export type WarehouseErrorCode =
  | "warehouse_unavailable"
  | "warehouse_refused_data"
  | "warehouse_query_failed";

/** `warehouse_refused_data`: the rows are at fault. */
export class WarehouseError extends ServiceError {
  /** Such as MEMORY_LIMIT_EXCEEDED of ClickHouse or ECONNREFUSED of the socket. */
  readonly causeName: string;
  /** Undefined: a single server. */
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

// Also when ClickHouse's own connection to a shard breaks.
const ENDS_TOO_EARLY: readonly string[] = ["ATTEMPT_TO_READ_AFTER_EOF", "CANNOT_READ_ALL_DATA"];

/** A shard may be the cause. */
export const endsTooEarly = (error: WarehouseError): boolean => ENDS_TOO_EARLY.includes(error.causeName);

// The rows are the cause. All others may pass, or an operator mends them.
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

// A retry fails too.
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
  // Of this program.
  "TypeError",
  "RangeError",
  "ReferenceError",
]);

// Retryable: ingest waits until an operator mends them.
const SETUP_ERRORS: ReadonlySet<string> = new Set(["ACCESS_DENIED", "UNKNOWN_TABLE", "UNKNOWN_DATABASE"]);

// The same work meets them again.
const LIMIT_ERRORS: ReadonlySet<string> = new Set([
  "MEMORY_LIMIT_EXCEEDED",
  "TIMEOUT_EXCEEDED",
  "TOO_SLOW",
  "TOO_MANY_ROWS",
  "TOO_MANY_BYTES",
  "TOO_MANY_ROWS_OR_BYTES",
  "SET_SIZE_LIMIT_EXCEEDED",
]);

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

export const brokenMidway = (): WarehouseError =>
  new WarehouseError("warehouse_unavailable", "EXCEPTION_MIDWAY", true, undefined);

export const isAwayError = (error: unknown): boolean =>
  error instanceof WarehouseError && AWAY_ERRORS.has(error.causeName);

export const isReset = (error: unknown): boolean => ["ECONNRESET", "EPIPE"].includes(causeNameOf(error));

export const isSetupError = (error: unknown): error is WarehouseError =>
  error instanceof WarehouseError && SETUP_ERRORS.has(error.causeName);

export const isLimitError = (error: unknown): error is WarehouseError =>
  error instanceof WarehouseError && LIMIT_ERRORS.has(error.causeName);

function causeNameOf(error: unknown): string {
  if (error instanceof ClickHouseError) return error.type ?? `CODE_${error.code}`;
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  if (!(error instanceof Error)) return "unknown";
  // The client marks time-outs only by this message.
  return error.message === "Timeout error." ? "TimeoutError" : error.name;
}

/** By type or code, by the message only for time-outs. */
export function toWarehouseError(error: unknown, server?: string): WarehouseError {
  if (error instanceof WarehouseError) return error;
  const name = causeNameOf(error);
  if (DATA_ERRORS.has(name)) return new WarehouseError("warehouse_refused_data", name, false, error, server);
  if (QUERY_BUGS.has(name)) return new WarehouseError("warehouse_query_failed", name, false, error, server);
  return new WarehouseError("warehouse_unavailable", name, true, error, server);
}
