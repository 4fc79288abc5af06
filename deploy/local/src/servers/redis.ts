import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { REDIS_DEFAULT_RULES, REDIS_USERS, redisRules } from "@conversation-export/queue";
import { fetchJars } from "./maven.ts";
import { cacheFolder, packageFolder } from "../paths.ts";
import { createFolderServer, type FolderDeps, type Server } from "../process/server.ts";
import { findProgram } from "../process/tied-process.ts";
import { readZipEntry } from "./zip.ts";

export type RedisDeps = FolderDeps & {
  readonly port: number;
  readonly log: (line: string) => void;
  readonly program?: string;
  readonly settings?: readonly string[];
};

const host = "127.0.0.1";
const artifact = "embedded-redis-1.4.3";
const binaries: Readonly<Record<string, string>> = {
  "linux-x64": "redis-server-6.2.6-v5-linux-amd64",
  "linux-arm64": "redis-server-6.2.7-linux-arm64",
  "darwin-x64": "redis-server-6.2.6-v5-darwin-amd64",
  "darwin-arm64": "redis-server-6.2.6-v5-darwin-arm64",
};

async function findBinary(deps: Pick<RedisDeps, "env" | "log" | "program">): Promise<string> {
  const installed =
    deps.program ??
    deps.env["REDIS_SERVER"] ??
    findProgram("redis-server", deps.env) ??
    findProgram("valkey-server", deps.env);
  if (installed !== undefined) return installed;
  const platform = `${process.platform}-${process.arch}`;
  const name = binaries[platform];
  if (name === undefined) {
    throw new Error(`There is no Redis to download for ${platform}: install redis-server or valkey-server`);
  }
  const path = join(cacheFolder, name);
  if (existsSync(path)) return path;
  const jars = await fetchJars(artifact, join(packageFolder, "redis", "pom.xml"), deps.env, deps.log);
  const partial = `${path}.${process.pid}`;
  writeFileSync(partial, readZipEntry(join(jars, `${artifact}.jar`), name));
  chmodSync(partial, 0o755);
  renameSync(partial, path);
  return path;
}

function ping(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 }, () => socket.write("PING\r\n"));
    const finish = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("data", (bytes) => finish(/^(\+PONG|-NOAUTH)/.test(bytes.toString())));
    socket.once("timeout", () => finish(false));
    socket.once("error", () => finish(false));
  });
}

/** Without passwords: only this machine reaches the server. */
const redisUsers = (): string =>
  [
    `user default on nopass ${REDIS_DEFAULT_RULES}`,
    ...REDIS_USERS.map((user) => `user ${user} on nopass ${redisRules(user)}`),
    "",
  ].join("\n");

export async function createRedis(deps: RedisDeps): Promise<Server> {
  const { folder, port } = deps;
  const binary = await findBinary(deps);
  const dataFolder = join(folder, "data");
  mkdirSync(dataFolder, { recursive: true });
  const usersPath = join(folder, "users.acl");
  writeFileSync(usersPath, redisUsers());
  return createFolderServer(deps, {
    name: "redis",
    command: [
      binary,
      "--port",
      String(port),
      "--bind",
      host,
      "--dir",
      dataFolder,
      "--daemonize",
      "no",
      "--aclfile",
      usersPath,
      "--appendonly",
      "yes",
      "--save",
      "",
      "--maxmemory-policy",
      "noeviction",
      ...(deps.settings ?? []),
    ],
    startDeadlineMs: 30_000,
    stopDeadlineMs: 10_000,
    ready: () => ping(port),
  });
}

export type SentinelDeps = RedisDeps & {
  readonly name: string;
  readonly serverPort: number;
  readonly password?: string;
  /** Default: 1. */
  readonly quorum?: number;
};

/** A server is down after a second. */
export async function createSentinel(deps: SentinelDeps): Promise<Server> {
  const { folder, port, name } = deps;
  const binary = await findBinary(deps);
  mkdirSync(folder, { recursive: true });
  const configPath = join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    `bind ${host}`,
    `dir ${folder}`,
    ...(deps.password === undefined ? [] : [`requirepass ${deps.password}`]),
    `sentinel monitor ${name} ${host} ${deps.serverPort} ${deps.quorum ?? 1}`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 5000`,
  ];
  writeFileSync(configPath, lines.map((line) => `${line}\n`).join(""));
  return createFolderServer(deps, {
    name: "sentinel",
    command: [binary, configPath, "--sentinel"],
    startDeadlineMs: 30_000,
    stopDeadlineMs: 10_000,
    ready: () => ping(port),
  });
}
