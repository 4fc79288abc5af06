import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { WAREHOUSE_USERS } from "@conversation-export/warehouse";
import { packageFolder } from "../paths.ts";
import { database, type TestRights, withServiceGrants } from "./clickhouse-users.ts";
import { createFolderServer, type FolderDeps, type Server } from "../process/server.ts";

export const clickhouseUsers = ["migrator", ...WAREHOUSE_USERS] as const;
export type ClickhouseUser = (typeof clickhouseUsers)[number];
export type ClickhousePasswords = Readonly<Record<ClickhouseUser, string>>;

export type ClickhouseCluster = {
  readonly name: string;
  /** Nothing replicates between them. */
  readonly areReplicas: boolean;
  /** Lets each server run a query as its sender. */
  readonly secret: string;
  readonly ports: readonly number[];
  /** Absent: no replication. */
  readonly keeper?: ClickhouseKeeper | undefined;
};

export type ClickhouseKeeper = {
  readonly port: number;
  readonly interserverPort: number;
  readonly replica: string;
};

export type ClickhouseDeps = FolderDeps & {
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly passwords: ClickhousePasswords;
  readonly cluster?: ClickhouseCluster | undefined;
  readonly testRights?: TestRights | undefined;
};

const host = "127.0.0.1";
const listenForever =
  "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; " +
  "SELECT sleepEachRow(1) FROM numbers(100000000) SETTINGS max_block_size=1, " +
  "function_sleep_max_microseconds_per_block=10000000, max_execution_time=0 FORMAT Null";

export function clickhouseUrl(port: number, user: string, password: string, name: string): string {
  const credentials = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
  return `http://${credentials}@${host}:${port}/${encodeURIComponent(name)}`;
}

/** Given passwords win over kept ones. */
export function keepPasswords(folder: string, given: Partial<ClickhousePasswords>): ClickhousePasswords {
  const path = join(folder, "passwords.json");
  const kept = existsSync(path)
    ? (JSON.parse(readFileSync(path, "utf8")) as Partial<ClickhousePasswords>)
    : {};
  const passwords = Object.fromEntries(
    clickhouseUsers.map((user) => [user, given[user] ?? kept[user] ?? randomBytes(18).toString("base64url")]),
  ) as ClickhousePasswords;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, JSON.stringify(passwords), { mode: 0o600 });
  chmodSync(path, 0o600);
  return passwords;
}

export function libraryPackage(platform: string, arch: string): string | undefined {
  const suffix = platform === "linux" ? "-gnu" : "";
  const known = (platform === "linux" || platform === "darwin") && (arch === "x64" || arch === "arm64");
  return known ? `@chdb/lib-${platform}-${arch}${suffix}` : undefined;
}

function findLibrary(): string {
  const given = process.env["CLICKHOUSE_LIBRARY"];
  if (given !== undefined && given !== "") return given;
  const name = libraryPackage(process.platform, process.arch);
  if (name !== undefined) {
    try {
      return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "libchdb.so");
    } catch {
      // Not installed.
    }
  }
  throw new Error(
    `There is no local ClickHouse for ${process.platform} ${process.arch}` +
      `${name === undefined ? "" : ` (the package ${name} is not installed)`}. Set CLICKHOUSE_URL, KAFKA_BROKERS ` +
      "and REDIS_URL to servers of your own, or start them with: docker compose -f deploy/compose.yaml up",
  );
}

/** @throws Error with ClickHouse's answer */
async function runAsMigrator(port: number, password: string, sql: string): Promise<void> {
  const answered = await fetch(`http://${host}:${port}/`, {
    method: "POST",
    headers: { "x-clickhouse-user": "migrator", "x-clickhouse-key": password, connection: "close" },
    body: sql,
    signal: AbortSignal.timeout(5_000),
  });
  const text = await answered.text();
  if (answered.status !== 200) throw new Error(text);
}

function remoteServers({ name, secret, ports, areReplicas }: ClickhouseCluster): string {
  const servers = ports.map((port) => `<replica><host>${host}</host><port>${port}</port></replica>`);
  const shards = areReplicas
    ? `<shard><internal_replication>true</internal_replication>${servers.join("")}</shard>`
    : servers.map((server) => `<shard>${server}</shard>`).join("");
  return `<remote_servers><${name}><secret>${secret}</secret>${shards}</${name}></remote_servers>`;
}

function replication({ port, interserverPort, replica }: ClickhouseKeeper): string {
  return (
    `<zookeeper><node><host>${host}</host><port>${port}</port></node><session_timeout_ms>10000</session_timeout_ms></zookeeper>` +
    `<interserver_http_port>${interserverPort}</interserver_http_port><interserver_http_host>${host}</interserver_http_host>` +
    `<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>` +
    `<macros><shard>1</shard><replica>${replica}</replica></macros>`
  );
}

/** `isWhole`: a server of its own, not inside Node. */
function programOf(libraryPath: string): { command: readonly [string, ...string[]]; isWhole: boolean } {
  const script = (name: string): string => join(import.meta.dirname, name);
  if (libraryPath.endsWith(".abi3.so")) {
    return { command: ["python3", script("clickhouse-server.py"), libraryPath], isWhole: true };
  }
  const node = [process.execPath, "--disable-warning=ExperimentalWarning"] as const;
  return { command: [...node, script("clickhouse-process.ts"), libraryPath], isWhole: false };
}

/** Ready once the migrator can log in. */
export function createClickhouse(deps: ClickhouseDeps): Server {
  const { folder, httpPort, tcpPort, passwords } = deps;
  const { command, isWhole } = programOf(findLibrary());
  const configFolder = join(packageFolder, "clickhouse");
  const dataFolder = join(folder, "data");
  mkdirSync(dataFolder, { recursive: true });
  const configPath = join(folder, "server.xml");
  const config = readFileSync(join(configFolder, "server.xml"), "utf8");
  const usersPath = join(folder, "users.xml");
  const users = readFileSync(join(configFolder, "users.xml"), "utf8");
  const keeper = deps.cluster?.keeper;
  const topology = { cluster: deps.cluster?.name ?? null, ...(keeper === undefined && { shards: [] }) };
  const granted = withServiceGrants(users, topology, deps.testRights);
  const quorum = `<insert_quorum>${deps.cluster?.ports.length}</insert_quorum>`;
  writeFileSync(
    usersPath,
    keeper === undefined ? granted : granted.replace("<default>", `<default>${quorum}`),
  );
  const added = [
    `<users_config>${usersPath}</users_config>`,
    // For `BACKUP … TO File('name')`.
    `<backups><allowed_path>${join(folder, "backups")}</allowed_path></backups>`,
  ];
  if (deps.cluster !== undefined) added.push(remoteServers(deps.cluster));
  if (keeper !== undefined) added.push(replication(keeper));
  writeFileSync(
    configPath,
    config.replace("</clickhouse>", () => `  ${added.join("\n  ")}\n</clickhouse>`),
    { mode: 0o600 },
  );

  const run = (sql: string): Promise<void> => runAsMigrator(httpPort, passwords.migrator, sql);

  const passwordEnv = Object.fromEntries(
    clickhouseUsers.map((user) => [`CLICKHOUSE_${user.toUpperCase()}_PASSWORD`, passwords[user]]),
  );
  const withPasswords = { ...deps, env: { ...deps.env, ...passwordEnv } };
  return createFolderServer(withPasswords, {
    name: "clickhouse",
    command: [
      ...command,
      `--config-file=${configPath}`,
      ...(isWhole ? ["--"] : []),
      `--path=${dataFolder}`,
      `--http_port=${httpPort}`,
      `--tcp_port=${tcpPort}`,
      `--listen_host=${host}`,
      ...(isWhole ? [] : ["--multiquery", `--query=${listenForever}`]),
    ],
    startDeadlineMs: 60_000,
    stopDeadlineMs: 15_000,
    ready: async () => {
      await run(`CREATE DATABASE IF NOT EXISTS ${database}`);
      return true;
    },
    ...(!isWhole && { askToStop: () => run("KILL QUERY WHERE query LIKE 'SELECT sleepEachRow(1)%'") }),
  });
}
