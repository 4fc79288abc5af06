import { ClickHouseError } from "@clickhouse/client";
import { ServiceError } from "@conversation-export/runtime";

export type WarehouseErrorCode =
  | "warehouse_unavailable"
  | "warehouse_refused_data"
  | "warehouse_query_failed";

/** Trouble with ClickHouse. `warehouse_refused_data` means that the rows themselves are at fault. */
export class WarehouseError extends ServiceError {
  /** ClickHouse's own name of the error, such as MEMORY_LIMIT_EXCEEDED, or the socket's, such as ECONNREFUSED. */
  readonly causeName: string;
  /** The address of the server that said it, where several are asked. */
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

// So says a server about the rows that it is sent, and about its own connection to a shard that breaks off.
const ENDS_TOO_EARLY: readonly string[] = ["ATTEMPT_TO_READ_AFTER_EOF", "CANNOT_READ_ALL_DATA"];

/** true: the data ended too early, which on a cluster may be the fault of a shard. */
export const endsTooEarly = (error: WarehouseError): boolean => ENDS_TOO_EARLY.includes(error.causeName);

// Errors that name the data of an INSERT; everything else may pass with time or an operator's hand.
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

// Errors of a query that are the query's fault and come back every time.
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

// What nobody but an operator can put right. A writer that has nothing else to do waits for that all the same.
const SETUP_ERRORS: ReadonlySet<string> = new Set(["ACCESS_DENIED", "UNKNOWN_TABLE", "UNKNOWN_DATABASE"]);

// What a connection says, or the client of one, when no answer comes.
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

/** true: no server answers there, or none in time, as one that hangs. */
export const isAwayError = (error: unknown): boolean =>
  error instanceof WarehouseError && AWAY_ERRORS.has(error.causeName);

/** true: a grant, a table or the database is missing. */
export const isSetupError = (error: unknown): error is WarehouseError =>
  error instanceof WarehouseError && SETUP_ERRORS.has(error.causeName);

function causeNameOf(error: unknown): string {
  if (error instanceof ClickHouseError) return error.type ?? `CODE_${error.code}`;
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  if (!(error instanceof Error)) return "unknown";
  // All that the client tells of a request without an answer in time are these words.
  return error.message === "Timeout error." ? "TimeoutError" : error.name;
}

function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
}

/**
 * Names what went wrong with a query or an insert, by the type of the error; by its words only a request that was not
 * answered in time (`TimeoutError`). `server`: the address of the one that was asked, where it is one of several.
 */
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
