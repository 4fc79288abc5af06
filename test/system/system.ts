import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Admin, createAdmin, createProducer, type Producer } from "@conversation-export/bus";
import { choosePorts, type Stack, type StackOptions, startStack } from "@conversation-export/local-stack";
import { createKey, createLogger } from "@conversation-export/runtime";
import { createClientStore, createSession } from "@conversation-export/warehouse";
import { ops } from "./ops.ts";
import { type ServiceName, type ServiceProcess, startService } from "./service-process.ts";
import type { KafkaCluster } from "./kafka-cluster.ts";
import { clusterVariables, rememberShards, SHARDS } from "./shards.ts";
import { until } from "./until.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PARTITIONS = 3;

export const TOPICS = { conversation: "conversations", message: "messages", end_user: "end-users" } as const;

const CLICKHOUSE_USERS = { ingest: "writer", "export-api": "reader", jobs: "jobs" } as const;

/** Servers, tables, topics and keys, ready for services to be started against them. */
export type System = {
  readonly stack: Stack;
  readonly admin: Admin;
  readonly producer: Producer;
  readonly partitions: number;
  readonly logFolder: string;
  service(name: ServiceName, env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  /** The environment that `service` passes to a process. */
  environment(name: ServiceName): Readonly<Record<string, string>>;
  /** The address of export-api with its /api prefix. */
  readonly apiUrl: string;
  /** One more process of a service, on ports of its own; `apiUrl` counts for export-api. */
  another(
    name: ServiceName,
    env: Readonly<Record<string, string>>,
  ): Promise<{ process: ServiceProcess; apiUrl: string }>;
  /** One more export-api on ports of its own; gives its address with the /api prefix. */
  anotherApi(env: Readonly<Record<string, string>>): Promise<{ process: ServiceProcess; apiUrl: string }>;
  /** Makes the client when it does not exist, and a key; by default one for the export alone. */
  key(clientId: string, scopes?: readonly string[]): Promise<string>;
  /** Waits until a consumer group has committed everything. */
  caughtUp(groupId: string, deadlineMs: number): Promise<void>;
  stop(): Promise<void>;
};

export type SystemOptions = Pick<
  StackOptions,
  "kafkaListeners" | "clickhousePasswords" | "shards" | "areReplicas" | "hasKeeper" | "testRights"
> & {
  /** Starts what stands for the one broker of the stack; each of its brokers gets a replica of each topic. */
  readonly startKafka?: (dir: string) => Promise<KafkaCluster>;
};

/** Starts servers in an empty folder `.local/<name>`, applies the migrations and creates the topics. */
export const startSystem = async (
  name: string,
  { startKafka, ...options }: SystemOptions = {},
): Promise<System> => {
  const dir = join(ROOT, ".local", name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const kafka = await startKafka?.(join(dir, "kafka"));
  const stack = await startStack({
    shards: SHARDS,
    ...options,
    ...(kafka !== undefined && { servers: ["clickhouse", "redis"] }),
    dir: join(dir, "servers"),
  });
  const brokers = kafka?.addresses ?? stack.kafka.brokers;
  rememberShards(stack);
  const cluster = clusterVariables(stack);
  const operator = {
    ...cluster,
    CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
    KAFKA_BROKERS: brokers.join(","),
  };
  const replication = ["--replication", String(kafka?.brokers.size ?? 1)];
  await Promise.all([
    ops(operator, "migrate"),
    ops(operator, "topics", "create", "--partitions", String(PARTITIONS), ...replication),
  ]);
  const log = createLogger({ service: "test", level: "error" });
  const connection = { brokers, clientId: "test", log };
  const admin = createAdmin(connection);
  const producer = createProducer(connection);
  await Promise.all([admin.start(), producer.start()]);
  const ports = await choosePorts({ names: ["api", "ingest", "export-api", "jobs"], fixed: {} });
  const running = new Set<ServiceProcess>();
  const session = createSession({ url: operator.CLICKHOUSE_URL, application: "test" });
  const access = createClientStore({ session, now: Date.now });

  const environment = (service: ServiceName): Readonly<Record<string, string>> => ({
    ...cluster,
    KAFKA_BROKERS: operator.KAFKA_BROKERS,
    KAFKA_SESSION_TIMEOUT_MS: "6000",
    LAG_INTERVAL_MS: "500",
    REDIS_URL: stack.redis.urlOf(service),
    // Tests exceed the limits of customers; tests of limits set their own.
    RATE_LIMITS: "off",
    RATE_LIMITS_DATA_SUBJECT_REQUEST: "off",
    RATE_LIMITS_SMS_TRIGGER: "off",
    AUTH_FAILURE_LIMITS: "off",
    CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
    PORT: String(ports.api),
    CLICKHOUSE_URL: stack.clickhouse.url(CLICKHOUSE_USERS[service]),
    CLICKHOUSE_LOOKUP_URL: stack.clickhouse.url("lookup"),
    CLICKHOUSE_INTAKE_URL: stack.clickhouse.url("intake"),
    TOPIC_SMS_TRIGGERS: "sms-triggers",
  });

  const start = async (
    service: ServiceName,
    metricsPort: number,
    logFile: string,
    env: Readonly<Record<string, string>>,
  ): Promise<ServiceProcess> => {
    const started = startService(service, {
      metricsPort,
      logFile: join(dir, logFile),
      env: { ...environment(service), ...env },
    });
    running.add(started);
    void started.exited.then(() => running.delete(started));
    await started.ready();
    return started;
  };

  const another: System["another"] = async (service, env) => {
    const own = await choosePorts({ names: ["api", "metrics"], fixed: {} });
    const process = await start(service, own.metrics, `${service}-${own.api}.log`, {
      PORT: String(own.api),
      ...env,
    });
    return { process, apiUrl: `http://127.0.0.1:${own.api}/api` };
  };

  return {
    stack,
    admin,
    producer,
    partitions: PARTITIONS,
    logFolder: dir,
    environment,
    apiUrl: `http://127.0.0.1:${ports.api}/api`,
    service: (service, env = {}) => start(service, ports[service], `${service}.log`, env),
    another,
    anotherApi: (env) => another("export-api", env),
    key: async (clientId, scopes = ["export"]) => {
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
    caughtUp: async (groupId, deadlineMs) => {
      const topics = Object.values(TOPICS);
      await until(`group ${groupId} has no lag`, deadlineMs, async () => {
        // A new group has no coordinator yet.
        const lags = await admin.fetchLag(groupId, topics).catch(() => null);
        return lags?.every(({ lag, end }) => lag === 0 || (lag === null && end === 0)) ?? false;
      });
    },
    stop: async () => {
      await Promise.all([...running].map((process) => process.kill("SIGKILL")));
      await Promise.all([producer.stop(), admin.stop(), session.close()]);
      await Promise.all([stack.kill(), kafka?.kill()]);
    },
  };
};
