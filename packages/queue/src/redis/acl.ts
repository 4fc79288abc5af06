import { KEY_PREFIX } from "../contract/job-queues.ts";

export const REDIS_USERS = ["export-api", "jobs", "ops"] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

export const REDIS_DEFAULT_RULES = "~* &* +@all";

const CONNECTION = ["+ping", "+info", "+select", "+client|setname"];
const SCRIPTS = ["+eval", "+evalsha", "+time"];
const keys = (...names: string[]): string[] => names.map((name) => `~${KEY_PREFIX}:${name}`);

/** Everything within our keys, nothing that concerns the server. */
const OF_JOBS = [
  ...keys("*"),
  "+@all",
  "-@admin",
  "-@dangerous",
  ...CONNECTION,
  // Processes are counted by their connections' names.
  "+client|list",
];

const RULES: Readonly<Record<RedisUser, readonly string[]>> = {
  // Limits, idempotency and erasure jobs: the keys of every other queue are closed to it.
  "export-api": [
    ...keys(
      "rate:*",
      "idempotency:*",
      "erasure:*",
      "job-cancel:erasure:*",
      "job-parts:erasure:*",
      "write-check",
    ),
    ...["hash", "list", "set", "sortedset", "stream", "string"].map((kind) => `+@${kind}`),
    ...["del", "exists", "pexpire", "pexpireat"].map((command) => `+${command}`),
    "-@dangerous",
    ...SCRIPTS,
    ...CONNECTION,
  ],
  jobs: OF_JOBS,
  ops: OF_JOBS,
};

export const redisRules = (user: RedisUser): string =>
  ["resetkeys", "resetchannels", "-@all", ...RULES[user]].join(" ");
