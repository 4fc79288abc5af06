import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { choosePorts, type Stack, startStack } from "@conversation-export/local-stack";
import kafkajs from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findProgram, type Manifest, podOf, readManifests, renderChart } from "../chart/helm.ts";
import { type LocalContainer, startContainer, type Surroundings } from "../chart/local-container.ts";
import { type RenderedContainer, renderedContainers } from "../chart/rendered-env.ts";
import { createAuthority, kafkaKeystore } from "../outside/certificates.ts";
import { buildImageTree } from "../outside/image-tree.ts";
import { isFullSize } from "../system/size.ts";
import { startTlsProxy, type TlsProxy } from "../outside/tls-proxy.ts";
import { until } from "../system/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = join(ROOT, ".local/test-chart-pods");
const SERVICES = ["ingest", "export-api", "jobs"] as const;
const KAFKA_USERS = { ingest: "ingest", exportApi: "export-api", jobs: "jobs", ops: "ops" } as const;
const REDIS_COMPONENTS = ["exportApi", "jobs", "ops"] as const;
const CLICKHOUSE_USERS = ["migrator", "writer", "reader", "lookup", "intake", "jobs"] as const;
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;

const helm = findProgram("helm");
if (helm === null) {
  console.warn(
    "\n*** SKIPPED: what the chart renders is not started, helm not found in .cache/bin or on the PATH: make chart installs it ***\n",
  );
}

type Acl = {
  readonly resource: { readonly type: "topic" | "group"; readonly name: string };
  readonly operations: readonly string[];
};

const renderedAcls = (): [string, readonly Acl[]][] =>
  readManifests(renderChart(helm ?? "", "strimzi-keda").stdout)
    .filter(({ kind }) => kind === "KafkaUser")
    .map(({ metadata, spec }) => [
      metadata.name.replace("demo-conversation-export-", ""),
      (spec as unknown as { authorization: { acls: readonly Acl[] } }).authorization.acls,
    ]);

const constantOf = (name: string): string => name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();

describe.skipIf(helm === null)("what the chart renders, started here", () => {
  let stack: Stack;
  let around: Surroundings;
  let containers: RenderedContainer[] = [];
  let manifests: Manifest[] = [];
  const proxies: TlsProxy[] = [];
  const running = new Map<string, LocalContainer>();
  let ports: Readonly<Record<"ingest" | "export-api" | "jobs" | "api" | "board", number>>;

  beforeAll(async () => {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    const authority = createAuthority(join(FOLDER, "certificates"));
    const server = authority.issue("server");
    const { sasl } = await choosePorts({ names: ["sasl"], fixed: {} });
    const passwordOf = (user: string): string => `${user}-Passw0rd`;
    stack = await startStack({
      dir: join(FOLDER, "servers"),
      kafkaListeners: {
        ports: { SASL_SSL: sasl },
        scramUsers: Object.fromEntries(Object.values(KAFKA_USERS).map((user) => [user, passwordOf(user)])),
        properties: {
          ...kafkaKeystore(server),
          "sasl.enabled.mechanisms": "SCRAM-SHA-512",
          "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config":
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
          "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
          // Clients without a password: this test and the broker itself.
          "super.users": "User:ANONYMOUS",
        },
      },
    });
    await grant();
    const clickhouse = await startTlsProxy(stack.clickhouse.port, server);
    const redis = await startTlsProxy(Number(new URL(stack.redis.url).port), server);
    proxies.push(clickhouse, redis);

    const { code, stdout, stderr } = renderChart(helm ?? "", "minimal", {
      set: {
        "secret.create": true,
        "kafka.brokers": [`localhost:${sasl}`],
        "kafka.tls": { enabled: true, ca: { existingConfigMap: "company-ca", key: "kafka.pem" } },
        "kafka.sasl": {
          mechanism: "scram-sha-512",
          users: Object.fromEntries(
            Object.entries(KAFKA_USERS).map(([component, username]) => [
              component,
              { username, existingSecret: { name: `kafka-${username}` } },
            ]),
          ),
        },
        "clickhouse.url": `https://localhost:${clickhouse.port}/${stack.clickhouse.database}`,
        "clickhouse.ca": { existingConfigMap: "company-ca" },
        "clickhouse.users": Object.fromEntries(
          CLICKHOUSE_USERS.map((user) => [
            user,
            { password: stack.clickhouse.passwords[user], existingSecret: { name: "" } },
          ]),
        ),
        "redis.url": `rediss://localhost:${redis.port}`,
        "redis.ca": { existingSecret: "redis-ca" },
        "redis.users": Object.fromEntries(
          REDIS_COMPONENTS.map((component) => [
            component,
            { username: KAFKA_USERS[component], existingSecret: { name: "redis-users" } },
          ]),
        ),
        "exportApi.config.RATE_LIMITS": "off",
        "jobs.board.existingSecret.name": "board",
      },
    });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    manifests = readManifests(stdout);
    containers = renderedContainers(manifests);
    const tree = isFullSize ? await buildImageTree(join(FOLDER, "image")) : null;
    around = {
      manifests,
      secrets: {
        ...Object.fromEntries(
          Object.values(KAFKA_USERS).map((user) => [`kafka-${user}`, { password: passwordOf(user) }]),
        ),
        "conversation-export-credentials": {
          "cursor-secret": "0123456789abcdef0123456789abcdef",
          "suppression-secret": "fedcba9876543210fedcba9876543210",
        },
        "redis-ca": { "ca.crt": authority.cert },
        "redis-users": { password: "any" },
        board: { password: "board-Passw0rd" },
      },
      configMaps: { "company-ca": { "ca.crt": authority.cert, "kafka.pem": authority.cert } },
      workingFolder: tree?.workingFolder ?? ROOT,
      folder: FOLDER,
      imageEnv: tree?.env ?? { NODE_COMPILE_CACHE: join(ROOT, ".cache/compile") },
    };
    ports = await choosePorts({ names: [...SERVICES, "api", "board"], fixed: {} });
  });
  afterAll(async () => {
    for (const { child } of running.values()) child.kill("SIGKILL");
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await stack?.kill();
  });

  const grant = async (): Promise<void> => {
    const admin = new kafkajs.Kafka({
      brokers: stack.kafka.brokers,
      logLevel: kafkajs.logLevel.NOTHING,
    }).admin();
    const rules = renderedAcls().flatMap(([user, acls]) =>
      acls.flatMap(({ resource, operations }) =>
        operations.map((operation) => ({ user, ...resource, operation })),
      ),
    );
    const all = [...rules, { user: "ops", type: "cluster", name: "kafka-cluster", operation: "Create" }];
    await admin.connect();
    await admin.createAcls({
      acl: all.map(({ user, type, name, operation }) => ({
        resourceType: AclResourceTypes[constantOf(type) as keyof typeof AclResourceTypes],
        resourceName: name,
        resourcePatternType: ResourcePatternTypes.LITERAL,
        principal: `User:${user}`,
        host: "*",
        operation: AclOperationTypes[constantOf(operation) as keyof typeof AclOperationTypes],
        permissionType: AclPermissionTypes.ALLOW,
      })),
    });
    await admin.disconnect();
  };

  const containerOf = (workload: string): RenderedContainer => {
    const found = containers.find((one) => one.workload === workload);
    if (found === undefined) throw new Error(`the chart renders no ${workload}`);
    return found;
  };
  const named = (kind: string, component: string): RenderedContainer =>
    containerOf(`${kind} demo-conversation-export-${component}`);

  const ops = async (...args: string[]): Promise<string> => {
    const job = named("CronJob", "ops");
    const { output, ended } = startContainer(job, around, {
      args: ["services/ops/src/main.ts", ...args],
      here: { OPERATOR: "jane@example.com" },
    });
    expect([await ended, output()]).toEqual([0, expect.anything()]);
    return output();
  };
  const probe = async (port: number, path: string): Promise<number | null> =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      ({ status }) => status,
      () => null,
    );

  it("applies migrations and makes topics in the Jobs of the hooks, by weight", async () => {
    const jobs = manifests
      .filter(({ kind }) => kind === "Job")
      .toSorted((a, b) => weightOf(a) - weightOf(b))
      .map(({ metadata }) => containerOf(`Job ${metadata.name}`));
    expect(jobs.map(({ service }) => service)).toEqual(["ops", "ops"]);
    for (const job of jobs) {
      const { ended, output } = startContainer(job, around);
      expect([job.workload, await ended, output()]).toEqual([job.workload, 0, expect.anything()]);
    }
  });

  it.concurrent.each(SERVICES)("starts %s, whose probes answer where the chart asks", async (service) => {
    const container = named("Deployment", service);
    expect(container.probes).not.toBeNull();
    if (container.probes === null) return;
    const { startup, liveness, readiness } = container.probes;
    for (const { port } of [startup, liveness, readiness])
      expect(String(port)).toBe(container.plain["METRICS_PORT"]);
    const metrics = ports[service];
    const { api, board } = ports;
    const here = {
      HOST: "127.0.0.1",
      METRICS_PORT: String(metrics),
      PORT: String(api),
      BOARD_PORT: String(board),
    };
    const started = startContainer(container, around, { here });
    running.set(service, started);
    await until(`${service} is ready`, 60_000, async () => {
      expect([started.child.exitCode, started.output()]).toEqual([null, expect.anything()]);
      return (await probe(metrics, readiness.path)) === 200;
    });
    expect(await probe(metrics, startup.path)).toBe(200);
    expect(await probe(metrics, liveness.path)).toBe(200);
    expect(await probe(metrics, "/metrics")).toBe(200);
    if (service === "export-api") expect(container.plain["PORT"]).toBe("8080");
    if (service === "jobs") {
      expect(container.plain["BOARD_PORT"]).toBe("9091");
      expect([await probe(board, "/board"), await probe(metrics, "/board")]).toEqual([401, 404]);
    }
  });

  it("has a helm test that asks each of them", async () => {
    const pod = manifests.find(({ metadata }) => metadata.name.endsWith("-test-ready"));
    const [asks] = (pod === undefined ? undefined : podOf(pod))?.containers ?? [];
    const args = (asks?.args ?? []).map((arg) =>
      arg.replace(
        /^http:\/\/demo-conversation-export-(.+)-metrics:9090/,
        (_all, service: (typeof SERVICES)[number]) => `http://127.0.0.1:${ports[service]}`,
      ),
    );
    const { ended, output } = startContainer(
      {
        ...named("CronJob", "ops"),
        workload: "Pod test-ready",
        command: asks?.command ?? [],
        plain: {},
        secret: {},
        files: {},
      },
      around,
      { args },
    );
    expect([await ended, output()]).toEqual([0, expect.stringMatching(/^(?:http:\S+\/ready 200 .*\n){3}$/)]);
  });

  it("has a doctor that finds nothing wrong", async () => {
    const findings = JSON.parse(await ops("doctor", "--json")) as { state: string }[];
    expect(findings.filter(({ state }) => state === "problem")).toEqual([]);
    expect(findings.length).toBeGreaterThan(5);
  });

  it("gives each component the rights at Kafka that its work needs", async () => {
    const kafka = new kafkajs.Kafka({ brokers: stack.kafka.brokers, logLevel: kafkajs.logLevel.NOTHING });
    const producer = kafka.producer();
    await producer.connect();
    await producer.send({ topic: "messages", messages: [{ key: "acme:1", value: "no event" }] });
    await producer.disconnect();
    const [deadLetters, status] = await Promise.all([
      countDeadLettersAfterReplay(),
      triggerSms(),
      ops("reconcile"),
      ops("status", "--partitions"),
    ]);
    expect({ deadLetters, status }).toEqual({ deadLetters: 2, status: 200 });
  });

  const countDeadLettersAfterReplay = async (): Promise<number> => {
    const count = async (): Promise<number> =>
      (JSON.parse(await ops("dead-letters", "list", "--json")) as unknown[]).length;
    await until("the dead letter is there", 30_000, async () => (await count()) === 1);
    await ops("dead-letters", "replay", "--topic", "messages", "--yes");
    await until("it was refused once more", 30_000, async () => (await count()) > 1);
    return count();
  };

  const triggerSms = async (): Promise<number> => {
    await ops("clients", "create", "acme");
    await ops("campaigns", "create", "order-shipped", "--client", "acme");
    const scopes = ["--scopes", "export,campaigns"];
    const answer = await ops("keys", "create", "--client", "acme", ...scopes, "--json");
    const { key } = JSON.parse(answer) as { key: string };
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = JSON.stringify({
      campaign_key: "order-shipped",
      language: "en",
      recipient: { meta_fields: { phone_number: "+15550199123" } },
    });
    let status = 0;
    await until("a trigger is taken", 30_000, async () => {
      const url = `http://127.0.0.1:${ports.api}/api/campaigns/sms/trigger`;
      ({ status } = await fetch(url, { method: "POST", headers, body }));
      return status === 200;
    });
    return status;
  };

  it.each(SERVICES)("ends %s by SIGTERM within its grace, with 0", async (service) => {
    const started = running.get(service);
    const { graceSeconds } = named("Deployment", service);
    const from = performance.now();
    started?.child.kill("SIGTERM");
    expect(await started?.ended).toBe(0);
    expect(performance.now() - from).toBeLessThan(graceSeconds * 1000);
  });
});

const weightOf = ({ metadata }: Manifest): number =>
  Number(metadata.annotations?.["helm.sh/hook-weight"] ?? 0);
