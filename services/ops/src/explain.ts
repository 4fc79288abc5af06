import { ServiceError } from "@conversation-export/runtime";
import { WarehouseError } from "@conversation-export/warehouse";

/** Something that the person at the terminal can put right; the message says what is wrong and what to do. */
export class CommandError extends Error {}

const UNREACHABLE: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "ETIMEDOUT",
  "EPIPE",
]);

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

const warehouseMessage = (error: WarehouseError, { username, host, pathname }: URL): string => {
  const user = decodeURIComponent(username) || "default";
  if (UNREACHABLE.has(error.causeName)) {
    return `ClickHouse does not answer at ${host} (${error.causeName}): check CLICKHOUSE_URL and that the server runs`;
  }
  switch (error.causeName) {
    case "AUTHENTICATION_FAILED":
    case "REQUIRED_PASSWORD":
    case "WRONG_PASSWORD":
    case "UNKNOWN_USER":
      return `ClickHouse refuses the user ${user}: check user and password in CLICKHOUSE_URL`;
    case "UNKNOWN_DATABASE":
    case "UNKNOWN_TABLE":
      return `the database ${pathname.slice(1)} has no such tables yet: run \`export-ops migrate\` first`;
    case "ACCESS_DENIED":
    case "READONLY":
      return `the ClickHouse user ${user} may not do this: CLICKHOUSE_URL must name the user for migrations`;
    default:
      return `ClickHouse refuses the request (${error.causeName}): ${innermostMessage(error)}`;
  }
};

/** Trouble with ClickHouse in words for the terminal; host and user come from the URL, never the password. */
export const explainWarehouse = (error: unknown, url: string): unknown =>
  error instanceof WarehouseError
    ? new CommandError(warehouseMessage(error, new URL(url)), { cause: error })
    : error;

/** One line that says what is wrong and what to do, or undefined when the error is a bug. */
export const explain = (error: unknown): string | undefined => {
  if (error instanceof CommandError) return error.message;
  if (!(error instanceof ServiceError)) return undefined;
  const message = oneLine(error.message);
  const inner = innermostMessage(error);
  return message.includes(inner) ? message : `${message}: ${inner}`;
};
