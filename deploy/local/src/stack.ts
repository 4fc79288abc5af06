import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  type ClickhousePasswords,
  type ClickhouseUser,
  clickhouseUrl,
  createClickhouse,
  keepPasswords,
} from "./servers/clickhouse.ts";
import { database, type TestRights } from "./servers/clickhouse-users.ts";
import type { RedisUser } from "@conversation-export/queue";
import { createKafka, type KafkaListeners } from "./servers/kafka.ts";
import { acquireLock, type Lock, LockedError } from "./process/lock-file.ts";
import { choosePorts } from "./process/ports.ts";
import { createRedis } from "./servers/redis.ts";
import { createZookeeper } from "./servers/zookeeper.ts";
import { createRelay, type Relay } from "./servers/relay.ts";
import { describeEnding, type Ending, type Server } from "./process/server.ts";

export const serverNames = ["kafka", "clickhouse", "redis"] as const;
export type ServerName = (typeof serverNames)[number];

export const clusterName = "shards";

const portNames = ["kafka", "kafkaController", "clickhouseHttp", "clickhouseTcp", "redis"] as const;
type PortName = (typeof portNames)[number];
type ShardPortName = `clickhouse${"Http" | "Tcp" | "Relay" | "Interserver"}${number}` | "clickhouseKeeper";
type AnyPortName = PortName | ShardPortName;

/** Default: those of the last start. */
export type StackPorts = Readonly<Partial<Record<PortName, number | undefined>>>;

export type StackOptions = {
  readonly dir: string;
  readonly ports?: StackPorts;
  /** Default: all. */
  readonly servers?: readonly ServerName[];
  readonly clickhousePasswords?: Partial<ClickhousePasswords>;
  /** Default: a single server. */
  readonly shards?: number;
  /** Nothing replicates between them. */
  readonly areReplicas?: boolean;
  /** ZooKeeper replicates; needs a whole server as `CLICKHOUSE_LIBRARY`. */
  readonly hasKeeper?: boolean;
  readonly testRights?: TestRights;
  readonly kafkaListeners?: KafkaListeners;
  readonly env?: NodeJS.ProcessEnv;
  readonly log?: (line: string) => void;
};

export type KafkaServer = Server & { readonly brokers: string[]; readonly logPath: string };

/** `url` includes user and password. */
export type ClickhouseServer = Server & {
  readonly host: string;
  readonly port: number;
  readonly tcpPort: number;
  readonly database: string;
  readonly passwords: ClickhousePasswords;
  readonly logPath: string;
  readonly url: (user: ClickhouseUser, name?: string) => string;
};

export type RedisServer = Server & {
  readonly url: string;
  readonly urlOf: (user: RedisUser) => string;
  readonly logPath: string;
};

/** Reading a server not in `servers` throws. */
export type Stack = {
  readonly kafka: KafkaServer;
  readonly clickhouse: ClickhouseServer;
  readonly clickhouseShards: readonly ClickhouseServer[];
  readonly hasKeeper: boolean;
  readonly redis: RedisServer;
  readonly stop: () => Promise<void>;
  /** For a folder that is deleted afterwards. */
  readonly kill: () => Promise<void>;
};

function readPorts(path: string): Partial<Record<AnyPortName, number>> {
  return existsSync(path)
    ? (JSON.parse(readFileSync(path, "utf8")) as Partial<Record<AnyPortName, number>>)
    : {};
}

function lockFolder(dir: string): Lock {
  try {
    return acquireLock(join(dir, "lock"));
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    throw new Error(
      `The folder ${dir} is in use by the stack of process ${error.owner.pid}: stop that one or choose another folder`,
      { cause: error },
    );
  }
}

function behindRelay(server: Server, relay: Relay): Server {
  return {
    get pid() {
      return server.pid;
    },
    start: async () => {
      if (server.pid !== undefined) return;
      await server.start();
      await relay.listen();
    },
    stop: async () => {
      await relay.close();
      await server.stop();
    },
    kill: async () => {
      await Promise.all([server.kill(), relay.close()]);
    },
  };
}

/** Keeps the live `pid` getter. */
function describe<Extra extends object>(server: Server, extra: Extra): Server & Extra {
  return Object.defineProperties(extra, Object.getOwnPropertyDescriptors(server)) as Server & Extra;
}

/** @throws Error with the failed server's log; all servers are stopped */
export async function startStack(options: StackOptions): Promise<Stack> {
  const dir = resolve(options.dir);
  const wanted = options.servers ?? serverNames;
  const env = options.env ?? process.env;
  const log = options.log ?? (() => undefined);
  mkdirSync(dir, { recursive: true });
  const lock = lockFolder(dir);
  const started: Server[] = [];

  async function end(how: "stop" | "kill"): Promise<void> {
    await Promise.all(started.map((server) => server[how]()));
    lock.release();
  }

  async function start<S extends Server>(
    name: ServerName,
    create: () => Promise<S> | S,
  ): Promise<S | undefined> {
    if (!wanted.includes(name)) return undefined;
    const from = performance.now();
    const server = await create();
    started.push(server);
    await server.start();
    log(`${name} ready after ${((performance.now() - from) / 1000).toFixed(1)} s (pid ${server.pid})`);
    return server;
  }

  const onUnexpectedEnd = (name: ServerName) => (ending: Ending) => {
    log(`${name} ended by itself: ${describeEnding(ending)}`);
  };

  try {
    const portsPath = join(dir, "ports.json");
    const kept = readPorts(portsPath);
    const shardNumbers = Array.from({ length: options.shards ?? 1 }, (_, index) => index + 1);
    const hasKeeper = options.hasKeeper ?? false;
    const names: AnyPortName[] = [
      ...portNames,
      ...(hasKeeper ? ["clickhouseKeeper" as const] : []),
      ...(hasKeeper ? shardNumbers.map((n) => `clickhouseInterserver${n}` as const) : []),
      ...shardNumbers.slice(1).flatMap((n) => [`clickhouseHttp${n}`, `clickhouseTcp${n}`] as const),
      ...(shardNumbers.length === 1 ? [] : shardNumbers.map((n) => `clickhouseRelay${n}` as const)),
    ].filter((name) => wanted.some((server) => name.startsWith(server)));
    const ports: Partial<Record<AnyPortName, number>> = {
      ...kept,
      ...(await choosePorts<AnyPortName>({ names, fixed: options.ports ?? {}, preferred: kept })),
    };
    writeFileSync(portsPath, JSON.stringify(ports));
    const port = (name: AnyPortName): number => ports[name] ?? 0;

    const kafkaFolder = join(dir, "kafka");
    const clickhouseFolder = join(dir, "clickhouse");
    const redisFolder = join(dir, "redis");

    let keptPasswords: ClickhousePasswords | undefined;
    const shardPorts = shardNumbers.map((n) => ({
      httpPort: port(n === 1 ? "clickhouseHttp" : `clickhouseHttp${n}`),
      tcpPort: port(n === 1 ? "clickhouseTcp" : `clickhouseTcp${n}`),
      relayPort: port(`clickhouseRelay${n}`),
    }));
    const cluster =
      shardPorts.length === 1
        ? undefined
        : {
            name: clusterName,
            areReplicas: options.areReplicas ?? false,
            secret: randomUUID(),
            // `ON CLUSTER` finds a server by the port it listens on itself.
            ports: shardPorts.map((one) => (hasKeeper ? one.tcpPort : one.relayPort)),
          };
    const startShard = ({ httpPort, tcpPort, relayPort }: (typeof shardPorts)[number], index: number) =>
      start("clickhouse", () => {
        keptPasswords ??= keepPasswords(clickhouseFolder, options.clickhousePasswords ?? {});
        const passwords = keptPasswords;
        const folder = index === 0 ? clickhouseFolder : `${clickhouseFolder}-${index + 1}`;
        const keeper = hasKeeper
          ? {
              port: port("clickhouseKeeper"),
              interserverPort: port(`clickhouseInterserver${index + 1}`),
              replica: `replica-${index + 1}`,
            }
          : undefined;
        const server = createClickhouse({
          folder,
          httpPort,
          tcpPort,
          env,
          passwords,
          cluster: cluster && { ...cluster, keeper },
          testRights: options.testRights,
          onUnexpectedEnd: onUnexpectedEnd("clickhouse"),
        });
        const reached =
          cluster === undefined
            ? server
            : behindRelay(server, createRelay({ host: "127.0.0.1", port: relayPort, targetPort: tcpPort }));
        return describe(reached, {
          host: "127.0.0.1",
          port: httpPort,
          tcpPort,
          database,
          passwords,
          logPath: join(folder, "server.log"),
          url: (user: ClickhouseUser, name = database) =>
            clickhouseUrl(httpPort, user, passwords[user], name),
        });
      });

    if (hasKeeper) {
      await start("clickhouse", () =>
        createZookeeper({
          folder: join(dir, "zookeeper"),
          port: port("clickhouseKeeper"),
          env,
          log,
          onUnexpectedEnd: onUnexpectedEnd("clickhouse"),
        }),
      );
    }
    const starts = [
      start("kafka", async () => {
        const server = await createKafka({
          folder: kafkaFolder,
          port: port("kafka"),
          controllerPort: port("kafkaController"),
          listeners: options.kafkaListeners,
          env,
          log,
          onUnexpectedEnd: onUnexpectedEnd("kafka"),
        });
        const brokers = [`127.0.0.1:${port("kafka")}`];
        return describe(server, { brokers, logPath: join(kafkaFolder, "server.log") });
      }),
      start("redis", async () => {
        const server = await createRedis({
          folder: redisFolder,
          port: port("redis"),
          env,
          log,
          onUnexpectedEnd: onUnexpectedEnd("redis"),
        });
        return describe(server, {
          url: `redis://127.0.0.1:${port("redis")}`,
          urlOf: (user: RedisUser) => `redis://${user}:any@127.0.0.1:${port("redis")}`,
          logPath: join(redisFolder, "server.log"),
        });
      }),
      ...shardPorts.map(startShard),
    ] as const;
    // Await failed starts too, so that stop reaches every server.
    await Promise.allSettled(starts);
    const [kafka, redis, ...shards] = await Promise.all(starts);
    const clickhouseShards = shards.filter((server) => server !== undefined);

    const need = <S>(server: S | undefined, name: ServerName): S => {
      if (server === undefined) throw new Error(`${name} is not among the servers of this stack`);
      return server;
    };
    return {
      get kafka() {
        return need(kafka, "kafka");
      },
      get clickhouse() {
        return need(clickhouseShards[0], "clickhouse");
      },
      clickhouseShards,
      hasKeeper,
      get redis() {
        return need(redis, "redis");
      },
      stop: () => end("stop"),
      kill: () => end("kill"),
    };
  } catch (error) {
    await end("stop");
    throw error;
  }
}
