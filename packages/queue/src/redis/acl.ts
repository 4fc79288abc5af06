import { KEY_PREFIX } from "../contract/job-queues.ts";

/** The processes that connect to Redis, each with a user of its own. */
export const REDIS_USERS = ["export-api", "jobs", "ops"] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

/** May do everything: the user `default` of a server. */
export const REDIS_DEFAULT_RULES = "~* &* +@all";

/** What a connection needs before it does anything. */
const CONNECTION = ["+ping", "+info", "+select", "+client|setname"];
const SCRIPTS = ["+eval", "+evalsha", "+time"];
const keys = (...names: string[]): string[] => names.map((name) => `~${KEY_PREFIX}:${name}`);

/** Everything within the keys of this system; nothing that concerns the server. */
const OF_JOBS = [
  ...keys("*"),
  "+@all",
  "-@admin",
  "-@dangerous",
  ...CONNECTION,
  // Processes are counted by the names of their connections.
  "+client|list",
];

const RULES: Readonly<Record<RedisUser, readonly string[]>> = {
  // It limits, remembers and adds erasures: the keys of every other queue are closed to it.
  "export-api": [
    ...keys("rate:*", "idempotency:*", "erasure:*", "job-cancel:erasure:*", "job-parts:erasure:*"),
    ...["hash", "list", "set", "sortedset", "stream", "string"].map((kind) => `+@${kind}`),
    ...["del", "exists", "pexpire", "pexpireat"].map((command) => `+${command}`),
    "-@dangerous",
    ...SCRIPTS,
    ...CONNECTION,
  ],
  jobs: OF_JOBS,
  ops: OF_JOBS,
};

/**
 * The rules of a user of Redis, as `ACL SETUSER` and a file of users take them, without its password.
 */
export const redisRules = (user: RedisUser): string =>
  ["resetkeys", "resetchannels", "-@all", ...RULES[user]].join(" ");
