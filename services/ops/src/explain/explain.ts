import {
  type ClickhouseServer,
  ConfigError,
  type KafkaServers,
  parseRedisUrl,
  type RedisServer,
  ServiceError,
} from "@conversation-export/runtime";
import { isAwayError, WarehouseError } from "@conversation-export/warehouse";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { CLICKHOUSE_TLS, explainTls, KAFKA_TLS, REDIS_TLS } from "./explain-tls.ts";

/** The operator can fix it. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;
  /** null: the message is one text. */
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

export const usageError = (message: string): CommandError =>
  new CommandError(message, { exitCode: EXIT.usage });

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ").trim();

export const innermostMessage = (error: unknown): string => {
  let current: unknown = error;
  for (;;) {
    // An AggregateError has no message of its own.
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

export const credentialsBeside = (variable: string): string =>
  `${variable.replace(/URL$/, "USER")} and ${variable.replace(/URL$/, "PASSWORD")}`;

const warehouseProblem = (error: WarehouseError, { username, pathname }: URL, variable: string): string => {
  const user = decodeURIComponent(username) || "default";
  switch (error.causeName) {
    case "AUTHENTICATION_FAILED":
    case "REQUIRED_PASSWORD":
    case "WRONG_PASSWORD":
    case "UNKNOWN_USER":
      return `ClickHouse refuses the user ${user}: check user and password in ${variable}, or ${credentialsBeside(variable)}`;
    case "UNKNOWN_DATABASE":
    case "UNKNOWN_TABLE":
      return `the database ${pathname.slice(1)} has no such tables yet: run \`export-ops migrate\` first`;
    case "ACCESS_DENIED":
    case "READONLY":
      return `the ClickHouse user ${user} may not do this (${innermostMessage(error)}): ${variable} must name the user for migrations, with its rights of docs/clickhouse.md, Users`;
    default:
      return `ClickHouse refuses the request (${error.causeName}): ${innermostMessage(error)}`;
  }
};

const BROKEN_OFF: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/** The server may speak only TLS. */
export const mayWantTls = (error: unknown): boolean =>
  error instanceof WarehouseError && (BROKEN_OFF.has(error.causeName) || error.causeName.startsWith("HPE_"));

/** Never with the password; other errors stay. */
export const explainWarehouse = (
  error: unknown,
  { url }: ClickhouseServer,
  variable = "CLICKHOUSE_URL",
): unknown => {
  if (!(error instanceof WarehouseError)) return error;
  const parsed = new URL(url);
  const { host } = error.server === undefined ? parsed : new URL(error.server);
  const address = error.server === undefined ? variable : "CLICKHOUSE_SHARD_URLS";
  const aboutTls = explainTls({ ...CLICKHOUSE_TLS, address }, host, error.causeName);
  if (aboutTls !== undefined) return new CommandError(aboutTls, { cause: error });
  return isAwayError(error)
    ? awayError("ClickHouse", host, address, error.causeName, error)
    : new CommandError(warehouseProblem(error, parsed, variable), { cause: error });
};

const refusedLogin = ({ sasl }: KafkaServers): string => {
  switch (sasl?.mechanism) {
    case "oauthbearer":
      return `Kafka refuses the token of ${sasl.endpoint.clientId}: check KAFKA_OAUTH_SCOPE, KAFKA_OAUTH_PARAMETERS and KAFKA_OAUTH_EXTENSIONS, and which issuer and audience the brokers accept`;
    case "aws-msk-iam":
      return "Kafka refuses the token that is signed by AWS: check KAFKA_AWS_REGION, the policy of the role, and the clock of this machine";
    default:
      return `Kafka refuses the user ${sasl?.username ?? ""} by ${sasl?.mechanism ?? ""}: check KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD and KAFKA_SASL_MECHANISM`;
  }
};

const noToken = ({ sasl }: KafkaServers): string =>
  sasl?.mechanism === "oauthbearer"
    ? `there is no token for Kafka from ${new URL(sasl.endpoint.url).host}: check KAFKA_OAUTH_TOKEN_URL, KAFKA_OAUTH_CLIENT_ID and KAFKA_OAUTH_CLIENT_SECRET`
    : "there is no token for Kafka: check the role of this process and that it reaches AWS's STS";

const BUS_PROBLEMS: Readonly<Record<string, (servers: KafkaServers) => string>> = {
  bus_credentials: refusedLogin,
  bus_token: noToken,
  bus_token_away: noToken,
  bus_tls: () => "there is no TLS with Kafka: check KAFKA_TLS, KAFKA_CA_FILE and KAFKA_CERT_FILE",
};

/** How brokers react to a client that should have logged in. */
const HUNG_UP = /closed connection|socket hang up|ECONNRESET/i;

/** Other errors stay. */
export const explainBus = (error: unknown, servers: KafkaServers): unknown => {
  if (!(error instanceof ServiceError)) return error;
  const say = BUS_PROBLEMS[error.code];
  if (say === undefined) {
    if (servers.sasl !== undefined || !HUNG_UP.test(innermostMessage(error))) return error;
    return new CommandError(
      {
        found: `Kafka closes the connection at ${servers.brokers.join(", ")} (${innermostMessage(error)})`,
        advice:
          "the broker is restarting, or it wants credentials: set KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD",
      },
      { cause: error },
    );
  }
  return new CommandError(`${say(servers)} (${innermostMessage(error)})`, { cause: error });
};

export const kafkaAway = (
  { brokers }: KafkaServers,
  problem: string | null = null,
  cause?: unknown,
): CommandError => {
  const where = brokers.join(", ");
  const aboutTls = explainTls(KAFKA_TLS, where, problem ?? "");
  return aboutTls === undefined
    ? awayError("Kafka", where, "KAFKA_BROKERS", problem, cause)
    : new CommandError(aboutTls, { cause });
};

/** `host:port` of the server or all sentinels. */
export const redisPlace = ({ url }: RedisServer): string =>
  (parseRedisUrl(url)?.hosts ?? [])
    .map(({ host, port }) => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`))
    .join(", ");

const REFUSED_BY_REDIS = /WRONGPASS|NOAUTH|invalid (username-)?password|without any password configured/i;

export const REFUSES_WRITES = "refuses writes";

const NO_WRITES: readonly (readonly [word: RegExp, advice: string])[] = [
  [/\bOOM\b/, "its memory is full: raise maxmemory, and do not let it evict"],
  [/\bNOREPLICAS\b/, "fewer replicas are connected than min-replicas-to-write wants: bring them back"],
  [/\bMISCONF\b/, "it cannot write to its disk: make room there, its log says where"],
  [/\bREADONLY\b/, "it is a replica: name the primary, or the sentinels, in REDIS_URL"],
];

/** Redis 6 puts this before answers in scripts. */
const IN_SCRIPT = /^ERR Error running script .*: -(?=[A-Z]+ )/;

const redisRefuses = (where: string, answer: string, cause: unknown): CommandError => {
  const problem = answer.replace(IN_SCRIPT, "");
  const advice = NO_WRITES.find(([word]) => word.test(problem))?.[1];
  return new CommandError(
    {
      found: `Redis ${advice === undefined ? "refuses the request" : REFUSES_WRITES} at ${where} (${oneLine(problem)})`,
      advice:
        advice ??
        (problem.startsWith("NOPERM")
          ? "give its user the rights that `export-ops grants --redis` prints"
          : "see its log"),
    },
    { cause },
  );
};

/** Never with the password. */
export const redisAway = (
  server: RedisServer,
  problem: string | null = null,
  cause?: unknown,
): CommandError => {
  const where = redisPlace(server);
  const aboutTls = explainTls(REDIS_TLS, where, problem ?? "");
  if (aboutTls !== undefined) return new CommandError(aboutTls, { cause });
  if (problem !== null && REFUSED_BY_REDIS.test(problem)) {
    return new CommandError(
      `Redis refuses the credentials at ${where} (${oneLine(problem)}): check user and password in REDIS_URL, or REDIS_USERNAME and REDIS_PASSWORD, and REDIS_SENTINEL_PASSWORD for sentinels`,
      { cause },
    );
  }
  const answer = cause instanceof ServiceError ? cause.cause : undefined;
  if (answer instanceof Error && answer.name === "ReplyError")
    return redisRefuses(where, answer.message, cause);
  return awayError("Redis", where, "REDIS_URL", problem, cause);
};

export const redisInClusterMode = (server: RedisServer, cause: unknown): CommandError =>
  new CommandError(
    {
      found: `Redis at ${redisPlace(server)} runs in cluster mode, in which scripts on several keys fail`,
      advice:
        "name a server in REDIS_URL that has cluster mode off, with replicas behind sentinels or a managed address",
    },
    { cause },
  );

/** undefined: a bug. */
export const explain = (error: unknown): string | undefined => {
  if (error instanceof CommandError) return error.message;
  if (!(error instanceof ServiceError)) return undefined;
  const message = oneLine(error.message);
  const inner = innermostMessage(error);
  return message.includes(inner) ? message : `${message}: ${inner}`;
};

export const exitCodeOf = (error: unknown): ExitCode => {
  if (error instanceof CommandError) return error.exitCode;
  return error instanceof ConfigError ? EXIT.usage : EXIT.failed;
};
