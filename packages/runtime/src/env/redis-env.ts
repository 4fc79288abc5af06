import { z } from "zod";
import { credential, withCredentials } from "./credentials.ts";
import { type Environment, parseEnv } from "./env.ts";
import { ConfigError } from "../errors.ts";
import { readCertificates } from "./pem-file.ts";

export type RedisServer = {
  /**
   * `redis[s]://user:password@host:port/database`, or
   * `redis[s]+sentinel://user:password@host:port,host:port/name/database`.
   */
  readonly url: string;
  /** Absent: the authorities that Node trusts. */
  readonly ca?: string;
  readonly sentinelPassword?: string;
};

type RedisAddress = {
  readonly tls: boolean;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** The server's name among the sentinels; null: no sentinels. */
  readonly name: string | null;
  readonly username: string;
  readonly password: string;
  readonly database: number;
};

const ADDRESS = /^redis(s?)(\+sentinel)?:\/\/(?:([^@/?#:]*)(?::([^@/?#]*))?@)?([^@/?#]+)((?:\/[^/?#]*)*)$/i;
const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/i;
const [SERVER_PORT, SENTINEL_PORT] = [6379, 26_379];

const decoded = (text: string | undefined): string | undefined => {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return undefined;
  }
};

export const parseRedisUrl = (url: string): RedisAddress | undefined => {
  const parts = ADDRESS.exec(url);
  if (parts === null) return undefined;
  const [, tls, sentinel, user, secret, hostList = "", path = ""] = parts;
  const hosts = hostList.split(",").map((one) => {
    const [, host = "", port = String(sentinel ? SENTINEL_PORT : SERVER_PORT)] = HOST.exec(one) ?? [];
    return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
  });
  const [username, password] = [decoded(user), decoded(secret)];
  const [name, database = "", ...more] = [...(sentinel ? [] : [""]), ...path.split("/").slice(1)];
  if (username === undefined || password === undefined || more.length > 0) return undefined;
  if (hosts.some(({ host, port }) => host === "" || port > 65_535)) return undefined;
  if (sentinel ? !name : hosts.length > 1) return undefined;
  if (!/^\d*$/.test(database)) return undefined;
  return {
    tls: tls !== "",
    hosts,
    name: sentinel ? (name ?? null) : null,
    username,
    password,
    database: Number(database),
  };
};

const schema = z.object({
  REDIS_URL: z.string().refine((url) => parseRedisUrl(url) !== undefined, {
    error:
      "must be redis://user:password@host:port/database, rediss:, or redis+sentinel://host:port,host:port/name, with user and password escaped (%40 for @)",
  }),
  REDIS_USERNAME: credential.optional(),
  REDIS_PASSWORD: credential.optional(),
  REDIS_SENTINEL_PASSWORD: credential.optional(),
  REDIS_CA_FILE: z.string().optional(),
});

export const readRedisServer = (env: Environment): RedisServer => {
  const values = parseEnv(schema, env);
  const address = parseRedisUrl(values.REDIS_URL);
  const { REDIS_CA_FILE: caPath, REDIS_SENTINEL_PASSWORD: sentinelPassword } = values;
  const problems: string[] = [];
  if (caPath !== undefined && address?.tls === false) {
    problems.push("REDIS_CA_FILE: counts only with rediss: in REDIS_URL; set that, or leave this out");
  }
  if (sentinelPassword !== undefined && address?.name === null) {
    problems.push("REDIS_SENTINEL_PASSWORD: counts only with redis+sentinel: in REDIS_URL; leave it out");
  }
  if (
    values.REDIS_USERNAME !== undefined &&
    values.REDIS_PASSWORD === undefined &&
    address?.password === ""
  ) {
    problems.push("REDIS_PASSWORD: is required with REDIS_USERNAME");
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const url = withCredentials(
    values.REDIS_URL,
    { username: values.REDIS_USERNAME, password: values.REDIS_PASSWORD },
    { address: "REDIS_URL", username: "REDIS_USERNAME", password: "REDIS_PASSWORD" },
  );
  return {
    url,
    ...(caPath !== undefined && { ca: readCertificates("REDIS_CA_FILE", caPath) }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
  };
};
