import { z } from "zod";
import { credential, withCredentials, withoutCredentials } from "./credentials.ts";
import { type Environment, parseEnv } from "./env.ts";
import { ConfigError } from "../errors.ts";
import { readCertificates } from "./pem-file.ts";

export type ClickhouseServer = {
  /** `http(s)://user:password@host:port/database` */
  readonly url: string;
  /** Absent: the authorities that Node trusts. */
  readonly ca?: string;
};

/** true for invalid addresses too, which have their own message. */
const canBeDecoded = (text: string): boolean => {
  const { username = "", password = "", pathname = "" } = URL.parse(text) ?? {};
  try {
    for (const part of [username, password, pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
};

const clickhouseUrl = z
  .url({ protocol: /^https?$/, error: "must be http://user:password@host:port/database, or https:" })
  .refine(canBeDecoded, "must have %25 where user, password or database hold a percent sign");

const ca = (url: string, path: string | undefined): Pick<ClickhouseServer, "ca"> =>
  path !== undefined && url.startsWith("https:") ? { ca: readCertificates("CLICKHOUSE_CA_FILE", path) } : {};

const schema = z.object({
  CLICKHOUSE_URL: clickhouseUrl,
  CLICKHOUSE_USER: credential.optional(),
  CLICKHOUSE_PASSWORD: credential.optional(),
  CLICKHOUSE_CA_FILE: z.string().optional(),
});

export const readClickhouseServer = (env: Environment): ClickhouseServer => {
  const values = parseEnv(schema, env);
  if (values.CLICKHOUSE_CA_FILE !== undefined && values.CLICKHOUSE_URL.startsWith("http:")) {
    throw new ConfigError([
      "CLICKHOUSE_CA_FILE: counts only with an https: address in CLICKHOUSE_URL; set that, or leave this out",
    ]);
  }
  const url = withCredentials(
    values.CLICKHOUSE_URL,
    { username: values.CLICKHOUSE_USER, password: values.CLICKHOUSE_PASSWORD },
    { address: "CLICKHOUSE_URL", username: "CLICKHOUSE_USER", password: "CLICKHOUSE_PASSWORD" },
  );
  return { url, ...ca(url, values.CLICKHOUSE_CA_FILE) };
};

export type ClickhouseCluster = {
  /** null: a single server, or one that replicates by itself. */
  readonly cluster: string | null;
  /** One for each shard of a cluster without Keeper. */
  readonly shards?: readonly string[];
};

const SHARD =
  "must be addresses, http://host:port or https:, with commas between them and nothing behind the port";

const isAddress = (text: string): boolean =>
  URL.canParse(text) &&
  /^https?:$/.test(new URL(text).protocol) &&
  new URL(text).origin === text.replace(/\/$/, "");

const clusterSchema = z.object({
  CLUSTER: z
    .string()
    .regex(/^[\w-]+$/, "must be a name of letters, digits, _ and -")
    .optional(),
  CLICKHOUSE_SHARD_URLS: z
    .string()
    .transform((text) => text.split(",").map((one) => one.trim()))
    .refine((addresses) => addresses.every(isAddress), SHARD)
    .refine((addresses) => new Set(addresses).size === addresses.length, "names a shard twice")
    .optional(),
});

export const readClickhouseCluster = (env: Environment): ClickhouseCluster => {
  const { CLUSTER: cluster, CLICKHOUSE_SHARD_URLS: shards } = parseEnv(clusterSchema, env);
  if (shards === undefined) return { cluster: cluster ?? null };
  if (cluster === undefined) {
    throw new ConfigError([
      "CLUSTER: is required with CLICKHOUSE_SHARD_URLS: the name under which the servers know each other (remote_servers)",
    ]);
  }
  return { cluster, shards };
};

export type ClickhouseUser = "WRITER" | "READER" | "LOOKUP" | "INTAKE" | "JOBS" | "ANALYST";

export const readClickhouseUser = (env: Environment, user: ClickhouseUser): ClickhouseServer | null => {
  const names = {
    address: `CLICKHOUSE_${user}_URL`,
    username: `CLICKHOUSE_${user}_USER`,
    password: `CLICKHOUSE_${user}_PASSWORD`,
  };
  const values = parseEnv(
    z.object({
      [names.address]: clickhouseUrl.optional(),
      [names.username]: credential.optional(),
      [names.password]: credential.optional(),
      CLICKHOUSE_CA_FILE: z.string().optional(),
    }),
    env,
  );
  const { [names.address]: own, [names.username]: username, [names.password]: password } = values;
  if (own === undefined && username === undefined) {
    if (password !== undefined)
      throw new ConfigError([`${names.username}: is required with ${names.password}`]);
    return null;
  }
  const base = own ?? withoutCredentials(parseEnv(schema.pick({ CLICKHOUSE_URL: true }), env).CLICKHOUSE_URL);
  const url = withCredentials(base, { username, password }, names);
  return { url, ...ca(url, values["CLICKHOUSE_CA_FILE"]) };
};

export const requireClickhouseUser = (env: Environment, user: ClickhouseUser): ClickhouseServer => {
  const server = readClickhouseUser(env, user);
  if (server !== null) return server;
  const name = `CLICKHOUSE_${user}`;
  throw new ConfigError([`${name}_URL: is required, or ${name}_USER and ${name}_PASSWORD in its place`]);
};
