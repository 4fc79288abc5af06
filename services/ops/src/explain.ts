import { ConfigError, ServiceError } from "@conversation-export/runtime";
import { isAwayError, WarehouseError } from "@conversation-export/warehouse";
import { EXIT, type ExitCode } from "./exit-code.ts";

/** Something that the person at the terminal can put right; the message says what is wrong and what to do. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;
  /** The two halves of the message, of one that has them. */
  readonly detail: { readonly found: string; readonly advice: string } | null;

  constructor(
    message: string | { readonly found: string; readonly advice: string },
    options: { readonly cause?: unknown; readonly exitCode?: ExitCode } = {},
  ) {
    super(
      typeof message === "string" ? message : `${message.found}: ${message.advice}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = "CommandError";
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.detail = typeof message === "string" ? null : message;
  }
}

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ").trim();

/** What the first cause of an error says, in one line. */
export const innermostMessage = (error: unknown): string => {
  let current: unknown = error;
  for (;;) {
    // An aggregate says nothing itself.
    const [first] = current instanceof Error && "errors" in current ? (current.errors as unknown[]) : [];
    const inner = first ?? (current instanceof Error ? current.cause : undefined);
    if (!(inner instanceof Error)) break;
    current = inner;
  }
  return oneLine(current instanceof Error ? current.message : String(current));
};

const awayError = (
  server: string,
  where: string,
  variable: string,
  problem: string | null,
  cause: unknown,
): CommandError =>
  new CommandError(
    {
      found: `${server} does not answer at ${where}${problem === null ? "" : ` (${oneLine(problem)})`}`,
      advice: `check ${variable} and that the server runs`,
    },
    { cause, exitCode: EXIT.away },
  );

const warehouseProblem = (error: WarehouseError, { username, pathname }: URL, variable: string): string => {
  const user = decodeURIComponent(username) || "default";
  switch (error.causeName) {
    case "AUTHENTICATION_FAILED":
    case "REQUIRED_PASSWORD":
    case "WRONG_PASSWORD":
    case "UNKNOWN_USER":
      return `ClickHouse refuses the user ${user}: check user and password in ${variable}`;
    case "UNKNOWN_DATABASE":
    case "UNKNOWN_TABLE":
      return `the database ${pathname.slice(1)} has no such tables yet: run \`export-ops migrate\` first`;
    case "ACCESS_DENIED":
    case "READONLY":
      return `the ClickHouse user ${user} may not do this: ${variable} must name the user for migrations`;
    default:
      return `ClickHouse refuses the request (${error.causeName}): ${innermostMessage(error)}`;
  }
};

/**
 * Trouble with ClickHouse in words for the terminal; host and user come from the URL, never the password. `variable`:
 * where the URL stands.
 */
export const explainWarehouse = (error: unknown, url: string, variable = "CLICKHOUSE_URL"): unknown => {
  if (!(error instanceof WarehouseError)) return error;
  const parsed = new URL(url);
  return isAwayError(error)
    ? awayError("ClickHouse", parsed.host, variable, error.causeName, error)
    : new CommandError(warehouseProblem(error, parsed, variable), { cause: error });
};

/** Kafka does not answer; `problem`: why, when it is known. */
export const kafkaAway = (
  brokers: readonly string[],
  problem: string | null = null,
  cause?: unknown,
): CommandError => awayError("Kafka", brokers.join(", "), "KAFKA_BROKERS", problem, cause);

/** Redis does not answer. The address comes without the password. */
export const redisAway = (url: string, problem: string | null = null, cause?: unknown): CommandError =>
  awayError("Redis", new URL(url).host, "REDIS_URL", problem, cause);

/** One line that says what is wrong and what to do, or undefined when the error is a bug. */
export const explain = (error: unknown): string | undefined => {
  if (error instanceof CommandError) return error.message;
  if (!(error instanceof ServiceError)) return undefined;
  const message = oneLine(error.message);
  const inner = innermostMessage(error);
  return message.includes(inner) ? message : `${message}: ${inner}`;
};

/** How the command ends after an error. */
export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof CommandError) return error.exitCode;
  return error instanceof ConfigError ? EXIT.usage : EXIT.failed;
};
