import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Admin,
  type Connection,
  createAdmin,
  createProducer,
  type Producer,
} from "@conversation-export/bus";
import {
  choosePorts,
  type ClickhouseUser,
  prepareSystem,
  serviceEnvironment,
  services,
  type Stack,
  type StackOptions,
} from "@conversation-export/local-stack";
import { createKey, createLogger } from "@conversation-export/runtime";
import { createClientStore, createSession } from "@conversation-export/warehouse";
import { logFolders, systemFolder } from "./log-folders.ts";
import { ops } from "./ops.ts";
import { type ServiceName, type ServiceProcess, startService } from "./service-process.ts";
import type { KafkaCluster } from "./kafka-cluster.ts";
import { clusterVariables, rememberShards, SHARDS } from "./shards.ts";
import { until } from "./until.ts";
import { runSql } from "./warehouse-sql.ts";

const PARTITIONS = 3;

/** That of ingest, unless a test gives another. */
export const GROUP = "conversation-export-ingest";

export const TOPICS = { conversation: "conversations", message: "messages", end_user: "end-users" } as const;

export type SystemAddresses = {
  readonly brokers: readonly string[];
  readonly clickhouse: Readonly<Record<ClickhouseUser, string>>;
  readonly environments: Readonly<Record<ServiceName, Readonly<Record<string, string>>>>;
  /** With /api. */
  readonly apiUrl: string;
  readonly logFolder: string;
};

/** Others use the system too, so no server or service can be stopped. */
export type RunningSystem = {
  /** To Kafka. */
  readonly connection: Connection;
  readonly admin: Admin;
  readonly producer: Producer;
  readonly partitions: number;
  readonly logFolder: string;
  readonly apiUrl: string;
  environment(name: ServiceName): Readonly<Record<string, string>>;
  /** On its own ports; `apiUrl` is for export-api. */
  another(
    name: ServiceName,
    env: Readonly<Record<string, string>>,
  ): Promise<{ process: ServiceProcess; apiUrl: string }>;
  anotherApi(env: Readonly<Record<string, string>>): Promise<{ process: ServiceProcess; apiUrl: string }>;
  /** Creates a missing client; default scope: export. @throws Error when another file has the client */
  key(clientId: string, scopes?: readonly string[]): Promise<string>;
  /** As the user who may do everything. */
  ops(...words: string[]): Promise<string>;
  /** As the same, without white space at its end. */
  sql(statement: string): Promise<string>;
  /** Events of all topics up to the offsets that the group has committed. */
  committed(groupId?: string): Promise<number>;
  caughtUp(deadlineMs: number, groupId?: string): Promise<void>;
  stop(): Promise<void>;
};

export type System = RunningSystem & {
  readonly stack: Stack;
  readonly addresses: SystemAddresses;
  service(name: ServiceName, env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
};

export type SystemOptions = Pick<
  StackOptions,
  "kafkaListeners" | "clickhousePasswords" | "shards" | "areReplicas" | "hasKeeper" | "testRights"
> & {
  readonly startKafka?: (dir: string) => Promise<KafkaCluster>;
};

export const startSystem = async (
  name: string,
  { startKafka, ...options }: SystemOptions = {},
): Promise<System> => {
  const dir = systemFolder(name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  logFolders.set(dir, "own");
  const kafka = await startKafka?.(join(dir, "kafka"));
  const env = {
    // Tests of limits set their own.
    RATE_LIMITS: "off",
    RATE_LIMITS_DATA_SUBJECT_REQUEST: "off",
    RATE_LIMITS_SMS_TRIGGER: "off",
    AUTH_FAILURE_LIMITS: "off",
    KAFKA_SESSION_TIMEOUT_MS: "6000",
    LAG_INTERVAL_MS: "500",
  };
  const replication = String(kafka?.brokers.size ?? 1);
  let cluster: Readonly<Record<string, string>> = {};
  const { stack, about } = await prepareSystem({
    stack: {
      shards: SHARDS,
      ...options,
      ...(kafka !== undefined && { servers: ["clickhouse", "redis"] }),
      dir: join(dir, "servers"),
    },
    ...(kafka !== undefined && { brokers: kafka.addresses }),
    env,
    cursorSecret: "0123456789abcdef0123456789abcdef",
    suppressionSecret: "fedcba9876543210fedcba9876543210",
    ops: (given, ...words) => ops({ ...given, ...cluster }, ...words),
    topics: ["--partitions", String(PARTITIONS), "--replication", replication],
    onServers: (started) => {
      rememberShards(started);
      cluster = clusterVariables(started);
    },
  }).catch(async (error: unknown) => {
    await kafka?.kill();
    throw error;
  });
  const brokers = about.kafkaBrokers.split(",");
  const ports = await choosePorts({ names: ["api", "ingest", "export-api", "jobs"], fixed: {} });
  const environment = (name: ServiceName): Readonly<Record<string, string>> => {
    const spec = services.find((service) => service.name === name);
    if (spec === undefined) throw new Error(`there is no service ${name}`);
    const given = serviceEnvironment(spec, env, about, { EXPORT_API_PORT: ports.api });
    const redis = name === "ingest" ? {} : { REDIS_URL: stack.redis.urlOf(name) };
    return { ...(given as Record<string, string>), ...cluster, ...redis };
  };
  const addresses: SystemAddresses = {
    brokers,
    clickhouse: Object.fromEntries(
      Object.keys(stack.clickhouse.passwords).map((user) => [
        user,
        stack.clickhouse.url(user as ClickhouseUser),
      ]),
    ) as Record<ClickhouseUser, string>,
    environments: {
      ingest: environment("ingest"),
      "export-api": environment("export-api"),
      jobs: environment("jobs"),
    },
    apiUrl: `http://127.0.0.1:${ports.api}/api`,
    logFolder: dir,
  };
  const processes = createProcesses(addresses);
  const connected = await connectTo(addresses, processes);
  return {
    ...connected,
    stack,
    addresses,
    service: (service, env = {}) => processes.start(service, ports[service], `${service}.log`, env),
    stop: async () => {
      await connected.stop();
      await Promise.all([stack.kill(), kafka?.kill()]);
    },
  };
};

const createProcesses = ({ environments, logFolder }: SystemAddresses) => {
  const running = new Set<ServiceProcess>();
  return {
    start: async (
      service: ServiceName,
      metricsPort: number,
      logFile: string,
      env: Readonly<Record<string, string>>,
    ): Promise<ServiceProcess> => {
      const started = startService(service, {
        metricsPort,
        logFile: join(logFolder, logFile),
        env: { ...environments[service], ...env },
      });
      running.add(started);
      void started.exited.then(() => running.delete(started));
      await started.ready();
      return started;
    },
    kill: async (): Promise<void> => {
      await Promise.all([...running].map((process) => process.kill("SIGKILL")));
    },
  };
};

export const connectTo = async (
  addresses: SystemAddresses,
  processes = createProcesses(addresses),
): Promise<RunningSystem> => {
  const log = createLogger({ service: "test", level: "error" });
  const connection = { brokers: [...addresses.brokers], clientId: "test", log };
  const admin = createAdmin(connection);
  const producer = createProducer(connection);
  await Promise.all([admin.start(), producer.start()]);
  const session = createSession({ url: addresses.clickhouse.migrator, application: "test" });
  const access = createClientStore({ session, now: Date.now });
  const claim = createClaims(join(addresses.logFolder, "clients"));

  const another: RunningSystem["another"] = async (service, env) => {
    const own = await choosePorts({ names: ["api", "metrics"], fixed: {} });
    const process = await processes.start(service, own.metrics, `${service}-${own.api}.log`, {
      PORT: String(own.api),
      ...env,
    });
    return { process, apiUrl: `http://127.0.0.1:${own.api}/api` };
  };

  return {
    connection,
    admin,
    producer,
    partitions: PARTITIONS,
    logFolder: addresses.logFolder,
    environment: (service) => addresses.environments[service],
    apiUrl: addresses.apiUrl,
    another,
    anotherApi: (env) => another("export-api", env),
    key: async (clientId, scopes = ["export"]) => {
      claim(clientId);
      const createdAt = new Date().toISOString();
      if ((await access.findClient(clientId)) === null) {
        const settings = { linkBounds: null, rateLimits: {}, retentionDays: null };
        await access.saveClient({ clientId, ...settings, deleted: false, createdAt });
      }
      const { key, hash } = createKey();
      await access.addKey(hash, {
        keyId: `key_${randomUUID()}`,
        clientId,
        label: "",
        scopes,
        revoked: false,
        createdAt,
        expiresAt: null,
      });
      return key;
    },
    ops: (...words) => ops({ CLICKHOUSE_URL: addresses.clickhouse.migrator }, ...words),
    sql: async (statement) => (await runSql(addresses.clickhouse.migrator, statement)).trim(),
    committed: async (groupId = GROUP) => {
      const offsets = await admin.fetchCommitted(groupId, Object.values(TOPICS));
      return offsets.reduce((sum, { offset }) => sum + (offset ?? 0), 0);
    },
    caughtUp: async (deadlineMs, groupId = GROUP) => {
      const topics = Object.values(TOPICS);
      let ends: readonly (number | null)[] | undefined;
      await until(`group ${groupId} has no lag`, deadlineMs, async () => {
        // A new group has no coordinator yet.
        const lags = await admin.fetchLag(groupId, topics).catch(() => undefined);
        ends ??= lags?.map(({ end }) => end);
        return (
          lags?.every(({ committed }, at) => {
            const end = ends?.[at] ?? null;
            return end === 0 || (end !== null && committed !== null && committed >= end);
          }) ?? false
        );
      });
    },
    stop: async () => {
      await processes.kill();
      await Promise.all([producer.stop(), admin.stop(), session.close()]);
    },
  };
};

/** Files that share a system must not see each other's clients. */
const createClaims = (folder: string): ((clientId: string) => void) => {
  const owner = randomUUID();
  return (clientId) => {
    mkdirSync(folder, { recursive: true });
    const path = join(folder, encodeURIComponent(clientId));
    try {
      writeFileSync(path, owner, { flag: "wx" });
    } catch {
      if (readFileSync(path, "utf8") !== owner)
        throw new Error(`the client ${clientId} belongs to another file of tests: choose another name`);
    }
  };
};
