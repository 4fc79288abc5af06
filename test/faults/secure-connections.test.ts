import { readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { inspect } from "node:util";
import { type Connection, createAdmin, createProducer } from "@conversation-export/bus";
import { choosePorts, createSentinel, startStack } from "@conversation-export/local-stack";
import { createIdempotencyStore, createRedis } from "@conversation-export/queue";
import {
  createLogger,
  type Environment,
  readKafkaServers,
  readRedisServer,
} from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Authority,
  createAuthority,
  type Identity,
  inProperty,
  kafkaKeystore,
} from "../outside/certificates.ts";
import { handMade } from "../sample/hand-made.ts";
import { ops, startOps } from "../system/ops.ts";
import { readTopics } from "../system/read-topics.ts";
import { type ServiceName, startService } from "../system/service-process.ts";
import { isFullSize } from "../system/size.ts";
import { startSystem, type System, TOPICS } from "../system/system.ts";
import { startTlsProxy, type TlsProxy } from "../outside/tls-proxy.ts";
import { until, untilItWorks } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = join(ROOT, ".local/test-secure-certificates");
/** Characters that are special in URLs; all output is searched for them. */
const PASSWORDS = {
  scram: "scram@P:/%2F+?#&-1",
  plain: "plain@P:/%2F+?#&-2",
  redis: "redis@P:/%2F+?#&-3",
  sentinel: "sentinel@P:/%2F+?#&-4",
  wrong: "wrong@P:/%2F+?#&-5",
  migrator: "migrator@P:/%2F+?# -6",
  writer: "writer@P:/%2F+?# -7é€",
} as const;
const log = createLogger({ service: "test", level: "silent" });
type Env = Readonly<Record<string, string>>;

describe("servers with TLS and credentials", () => {
  let system: System;
  let authority: Authority;
  let stranger: Authority;
  let client: Identity;
  let elsewhere: { readonly kafka: TlsProxy; readonly clickhouse: TlsProxy; readonly redis: TlsProxy };
  let clickhouse: TlsProxy;
  let redis: TlsProxy;
  const ports = { SASL_SSL: 0, SSL: 0, SASL_PLAINTEXT: 0 };
  const stops: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    authority = createAuthority(FOLDER);
    stranger = createAuthority(FOLDER, "stranger");
    client = authority.issue("client");
    const server = authority.issue("server");
    const { sasl, mutual, noTls } = await choosePorts({ names: ["sasl", "mutual", "noTls"], fixed: {} });
    Object.assign(ports, { SASL_SSL: sasl, SSL: mutual, SASL_PLAINTEXT: noTls });
    const modules = "org.apache.kafka.common.security";
    system = await startSystem("test-secure", {
      clickhousePasswords: { migrator: PASSWORDS.migrator, writer: PASSWORDS.writer },
      kafkaListeners: {
        ports,
        scramUsers: { scram: PASSWORDS.scram },
        properties: {
          ...kafkaKeystore(server),
          "ssl.truststore.type": "PEM",
          "ssl.truststore.certificates": inProperty(authority.cert),
          "listener.name.ssl.ssl.client.auth": "required",
          "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
          "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
          "listener.name.sasl_ssl.plain.sasl.jaas.config": `${modules}.plain.PlainLoginModule required user_plain="${PASSWORDS.plain}";`,
          "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": `${modules}.scram.ScramLoginModule required;`,
          "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": `${modules}.scram.ScramLoginModule required;`,
        },
      },
    });
    const { stack } = system;
    const redisPort = Number(new URL(stack.redis.url).port);
    await ask(redisPort, `ACL SETUSER app on >${PASSWORDS.redis} ~* &* +@all`);
    await ask(redisPort, `CONFIG SET requirepass ${PASSWORDS.redis}`);
    clickhouse = await proxy(stack.clickhouse.port, server);
    redis = await proxy(redisPort, server);
    const stolen = authority.issue("elsewhere", ["DNS:elsewhere", "IP:127.0.0.2"]);
    elsewhere = {
      kafka: await proxy(Number(stack.kafka.brokers[0]?.split(":")[1]), stolen),
      clickhouse: await proxy(stack.clickhouse.port, stolen),
      redis: await proxy(redisPort, stolen),
    };
  });
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop();
    await system?.stop();
  });

  const proxy = async (target: number, identity: Identity): Promise<TlsProxy> => {
    const started = await startTlsProxy(target, identity);
    stops.push(started.close);
    return started;
  };

  const kafkaEnv = (mechanism: "plain" | "scram-sha-512", password?: string): Env => {
    const name = mechanism === "plain" ? "plain" : "scram";
    return {
      KAFKA_BROKERS: `localhost:${ports.SASL_SSL}`,
      KAFKA_TLS: "on",
      KAFKA_CA_FILE: authority.certPath,
      KAFKA_SASL_MECHANISM: mechanism,
      KAFKA_SASL_USERNAME: name,
      KAFKA_SASL_PASSWORD: password ?? PASSWORDS[name],
    };
  };
  const plainBroker = (): string => system.stack.kafka.brokers.join(",");
  const withoutTls = (): Env => ({
    KAFKA_BROKERS: `localhost:${ports.SASL_PLAINTEXT}`,
    KAFKA_SASL_MECHANISM: "scram-sha-256",
    KAFKA_SASL_USERNAME: "scram",
    KAFKA_SASL_PASSWORD: PASSWORDS.scram,
  });
  const mutualEnv = (): Env => ({
    KAFKA_BROKERS: `127.0.0.1:${ports.SSL}`,
    KAFKA_TLS: "on",
    KAFKA_CA_FILE: authority.certPath,
    KAFKA_CERT_FILE: client.certPath,
    KAFKA_KEY_FILE: client.keyPath,
  });
  const clickhouseEnv = (user: "writer" | "reader" | "jobs" | "migrator", { port } = clickhouse) => ({
    CLICKHOUSE_URL: `https://localhost:${port}/${system.stack.clickhouse.database}`,
    CLICKHOUSE_CA_FILE: authority.certPath,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: system.stack.clickhouse.passwords[user],
  });
  const redisEnv = ({ port } = redis) => ({
    REDIS_URL: `rediss://localhost:${port}`,
    REDIS_CA_FILE: authority.certPath,
    REDIS_PASSWORD: PASSWORDS.redis,
  });
  const connection = (env: Environment): Connection => ({ ...readKafkaServers(env), clientId: "test", log });

  const expectNoSecret = (text: string): void => {
    const secrets = [...Object.values(PASSWORDS), ...Object.values(system.stack.clickhouse.passwords)];
    for (const secret of secrets) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(encodeURIComponent(secret));
      expect(text).not.toContain(JSON.stringify(secret).slice(1, -1));
    }
  };

  it.concurrent.each([
    ["SASL PLAIN over TLS", () => kafkaEnv("plain")],
    ["SASL SCRAM-SHA-512 over TLS", () => kafkaEnv("scram-sha-512")],
    ["a certificate of its own", mutualEnv],
    ["SASL SCRAM-SHA-256 without TLS", withoutTls],
  ])("a producer and a consumer come in with %s", async (name, env) => {
    const topic = `secure-${name.replaceAll(" ", "-")}`;
    const admin = createAdmin(connection(env()));
    const producer = createProducer(connection(env()));
    await Promise.all([admin.start(), producer.start()]);
    await admin.createTopics([{ topic, partitions: 1 }]);
    await producer.send(topic, [{ key: null, value: name }]);
    const seen = await readTopics(connection(env()), [topic], 1);
    expect(seen.map(({ value }) => String(value))).toEqual([name]);
    await Promise.all([producer.stop(), admin.stop()]);
  });

  it.concurrent.each([
    ["bus_credentials", "a wrong password (PLAIN)", () => kafkaEnv("plain", PASSWORDS.wrong)],
    ["bus_credentials", "a wrong password (SCRAM)", () => kafkaEnv("scram-sha-512", PASSWORDS.wrong)],
    [
      "bus_credentials",
      "another mechanism",
      () => ({ ...kafkaEnv("plain"), KAFKA_SASL_MECHANISM: "scram-sha-256" }),
    ],
    ["bus_credentials", "a listener without SASL", () => ({ ...withoutTls(), KAFKA_BROKERS: plainBroker() })],
    ["bus_tls", "another authority", () => ({ ...kafkaEnv("plain"), KAFKA_CA_FILE: stranger.certPath })],
    [
      "bus_tls",
      "the certificate of another host",
      () => ({ ...kafkaEnv("plain"), KAFKA_BROKERS: `localhost:${elsewhere.kafka.port}` }),
    ],
    [
      "bus_tls",
      "the certificate of another address",
      () => ({ ...kafkaEnv("plain"), KAFKA_BROKERS: `127.0.0.1:${elsewhere.kafka.port}` }),
    ],
    ["bus_tls", "no certificate", () => ({ ...mutualEnv(), KAFKA_CERT_FILE: "", KAFKA_KEY_FILE: "" })],
  ])("ends with %s for %s", async (code, _what, env) => {
    const admin = createAdmin(connection(env()));
    const refusal: unknown = await admin.start().catch((error: unknown) => error);
    await admin.stop();
    expect(refusal).toMatchObject({ code, retryable: false });
    expectNoSecret(inspect(refusal, { depth: 9 }));
  });

  it.concurrent.each([
    ["WRONGPASS", "a wrong password", () => ({ REDIS_PASSWORD: PASSWORDS.wrong })],
    ["WRONGPASS", "a wrong user", () => ({ REDIS_USERNAME: "nobody" })],
    [
      "unable to verify the first certificate",
      "another authority",
      () => ({ REDIS_CA_FILE: stranger.certPath }),
    ],
    [
      "does not match certificate's altnames",
      "the certificate of another host",
      () => ({ REDIS_URL: `rediss://localhost:${elsewhere.redis.port}` }),
    ],
    [
      "does not match certificate's altnames",
      "the certificate of another address",
      () => ({ REDIS_URL: `rediss://127.0.0.1:${elsewhere.redis.port}` }),
    ],
  ])("Redis is away, with %s in the log, for %s", async (said, _what, more) => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const asked = createRedis({
      ...readRedisServer({ ...redisEnv(), ...more() }),
      log: createLogger({ service: "test", level: "trace", destination }),
    });
    asked.connect();
    await until(`the log says ${said}`, 30_000, () => lines.length > 0);
    const refusal = await asked.tryWrite().catch((error: unknown) => error);
    await asked.stop();
    expect(lines.join()).toContain(said);
    expect(refusal).toMatchObject({ code: "redis_unavailable" });
    expectNoSecret(lines.join());
  });

  type Doctor = { readonly code: number; readonly text: string; found(area: string, name?: string): string };

  const doctor = async (env: Env): Promise<Doctor> => {
    const secrets = {
      CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
      SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
    };
    const { code, stdout, stderr } = await startOps({ ...secrets, ...env }, "doctor", "--json").ended;
    const findings = JSON.parse(stdout) as { area: string; name: string; state: string; found: string }[];
    return {
      code,
      text: stdout + stderr,
      found: (area, name) => {
        const first = findings.find((one) => one.area === area && (name === undefined || one.name === name));
        return `${first?.state}: ${first?.found}`;
      },
    };
  };

  it.concurrent("doctor finds everything well, or says what is wrong with TLS and credentials", async () => {
    const { stack } = system;
    const good = {
      ...kafkaEnv("scram-sha-512"),
      ...clickhouseEnv("migrator"),
      ...redisEnv(),
      CLICKHOUSE_WRITER_USER: "writer",
      CLICKHOUSE_WRITER_PASSWORD: stack.clickhouse.passwords.writer,
      CLICKHOUSE_READER_USER: "reader",
      CLICKHOUSE_READER_PASSWORD: PASSWORDS.wrong,
    };
    const plainPorts = {
      KAFKA_BROKERS: plainBroker(),
      CLICKHOUSE_URL: good.CLICKHOUSE_URL.replace(String(clickhouse.port), String(stack.clickhouse.port)),
      REDIS_URL: stack.redis.url.replace("redis:", "rediss:"),
    };
    const noFiles = { KAFKA_CA_FILE: "", CLICKHOUSE_CA_FILE: "", REDIS_CA_FILE: "" };
    const [well, authorities, notTls, onlyTls, passwords, otherName, noSasl] = await Promise.all([
      doctor(good),
      doctor({
        ...good,
        KAFKA_CA_FILE: stranger.certPath,
        CLICKHOUSE_CA_FILE: "",
        REDIS_CA_FILE: stranger.certPath,
      }),
      doctor({ ...good, ...plainPorts }),
      doctor({
        ...good,
        ...noFiles,
        KAFKA_TLS: "off",
        CLICKHOUSE_URL: good.CLICKHOUSE_URL.replace("https:", "http:"),
        REDIS_URL: good.REDIS_URL.replace("rediss:", "redis:"),
      }),
      doctor({
        ...good,
        KAFKA_SASL_PASSWORD: PASSWORDS.wrong,
        CLICKHOUSE_PASSWORD: PASSWORDS.wrong,
        REDIS_PASSWORD: PASSWORDS.wrong,
      }),
      doctor({
        ...good,
        KAFKA_BROKERS: `localhost:${elsewhere.kafka.port}`,
        CLICKHOUSE_URL: `https://localhost:${elsewhere.clickhouse.port}/${stack.clickhouse.database}`,
        REDIS_URL: `rediss://127.0.0.1:${elsewhere.redis.port}`,
      }),
      doctor({ KAFKA_BROKERS: `localhost:${ports.SASL_PLAINTEXT}` }),
    ]);
    expect(well.found("Kafka")).toMatch(/^ok: answer at localhost:\d+$/);
    expect(well.found("ClickHouse")).toMatch(/^ok: [\d.]+ at localhost:\d+$/);
    expect(well.found("Redis")).toMatch(/^ok: [\d.]+ at localhost:\d+/);
    expect(well.found("ClickHouse", "user writer")).toMatch(/^ok: has what it needs/);
    expect(well.found("ClickHouse", "user reader")).toMatch(/^problem: .* user reader.*READER_PASSWORD$/);
    expect(well.found("ClickHouse", "user jobs")).toBe("skipped: not looked at");

    expect(authorities.found("Kafka")).toMatch(/^problem: .* not signed by .*KAFKA_CA_FILE$/);
    expect(authorities.found("ClickHouse")).toMatch(/^problem: .* not signed by .*CLICKHOUSE_CA_FILE$/);
    expect(authorities.found("Redis")).toMatch(/^problem: .* not signed by .*REDIS_CA_FILE$/);

    expect(notTls.found("Kafka")).toMatch(/^problem: Kafka does not speak TLS at .*KAFKA_TLS=off$/);
    expect(notTls.found("ClickHouse")).toMatch(/^problem: ClickHouse does not speak TLS at .*write http:/);
    expect(notTls.found("Redis")).toMatch(/^problem: Redis does not speak TLS at .*write redis:/);

    expect(onlyTls.found("Kafka")).toMatch(/^problem: Kafka speaks only TLS at .*KAFKA_TLS=on$/);
    expect(onlyTls.found("ClickHouse")).toMatch(/^problem: ClickHouse speaks only TLS at .*write https:/);
    expect(onlyTls.found("Redis")).toMatch(/^problem: Redis speaks only TLS at .*write rediss:/);

    expect(passwords.found("Kafka")).toMatch(/^problem: Kafka refuses the user scram .*KAFKA_SASL_PASSWORD/);
    expect(passwords.found("ClickHouse")).toMatch(/^problem: ClickHouse refuses the user migrator.*PASSWORD/);
    expect(passwords.found("Redis")).toMatch(/^problem: Redis refuses the credentials at .*REDIS_PASSWORD/);

    for (const area of ["Kafka", "ClickHouse", "Redis"]) {
      expect(otherName.found(area)).toMatch(/^problem: .* is for another host/);
    }
    expect(noSasl.found("Kafka")).toMatch(/^problem: Kafka closes the connection at /);
    expect(noSasl.text).toContain("it wants credentials: set KAFKA_SASL_MECHANISM");

    const all = [well, authorities, notTls, onlyTls, passwords, otherName, noSasl];
    expect(all.slice(0, -1).map(({ code }) => code)).toEqual([1, 1, 1, 1, 1, 1]);
    for (const { text } of all) expectNoSecret(text);
  });

  it.concurrent("the services become ready with these variables alone, write, and run a job", async () => {
    const { stack } = system;
    const server = authority.issue("own-server");
    const clickhouseDoor = await proxy(stack.clickhouse.port, server);
    const redisDoor = await proxy(Number(new URL(stack.redis.url).port), server);
    const common = { ...kafkaEnv("scram-sha-512"), ...redisEnv(redisDoor), REDIS_USERNAME: "app" };
    const env = {
      ingest: { ...common, ...clickhouseEnv("writer", clickhouseDoor) },
      "export-api": {
        ...common,
        ...kafkaEnv("plain"),
        ...clickhouseEnv("reader", clickhouseDoor),
        CLICKHOUSE_LOOKUP_URL: "",
        CLICKHOUSE_LOOKUP_USER: "lookup",
        CLICKHOUSE_LOOKUP_PASSWORD: stack.clickhouse.passwords.lookup,
        CLICKHOUSE_INTAKE_URL: "",
        CLICKHOUSE_INTAKE_USER: "intake",
        CLICKHOUSE_INTAKE_PASSWORD: stack.clickhouse.passwords.intake,
      },
      jobs: {
        ...common,
        ...mutualEnv(),
        KAFKA_SASL_MECHANISM: "",
        KAFKA_SASL_USERNAME: "",
        KAFKA_SASL_PASSWORD: "",
        ...clickhouseEnv("jobs", clickhouseDoor),
      },
    } as const;
    const services = ["ingest", "export-api", "jobs"] as const;
    await Promise.all(services.map((name) => system.service(name, env[name])));
    const store = async (id: string): Promise<void> => {
      const event = handMade({
        kind: "conversation",
        client: "acme",
        id,
        time: new Date().toISOString(),
        data: { _id: id, date_created: "2026-10-04T12:00:00Z" },
      });
      await system.producer.send(TOPICS.conversation, [
        { key: event.key, value: event.value, headers: event.headers },
      ]);
      const stored = `SELECT count() FROM conversations WHERE conversation_id = '${id}' FORMAT TSV`;
      await until(`${id} is stored`, 30_000, async () =>
        (await runSql(stack.clickhouse.url("migrator"), stored)).startsWith("1"),
      );
    };
    await store("secure-1");
    const stdout = await ops(
      { ...clickhouseEnv("migrator"), ...redisEnv() },
      "windows",
      "--recount",
      "--json",
    );
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ rows: 1 }));
    // Jobs of the start would wait for the interrupted attempt's lock.
    const doors = [clickhouseDoor, redisDoor];
    const before = doors.map((door) => door.accepted());
    for (const door of doors) door.drop();
    await store("secure-2");
    await until("they are connected again", 30_000, () =>
      doors.every((door, at) => door.accepted() > (before[at] ?? Infinity)),
    );
    for (const name of services) expectNoSecret(readFileSync(join(system.logFolder, `${name}.log`), "utf8"));
  });

  const refused: readonly { code: string; name: ServiceName; env: () => Env; isLong: boolean }[] = [
    {
      code: "bus_credentials",
      name: "ingest",
      env: () => kafkaEnv("scram-sha-512", PASSWORDS.wrong),
      isLong: false,
    },
    { code: "bus_credentials", name: "jobs", env: () => kafkaEnv("plain", PASSWORDS.wrong), isLong: true },
    {
      code: "bus_tls",
      name: "ingest",
      env: () => ({ ...kafkaEnv("plain"), KAFKA_CA_FILE: stranger.certPath }),
      isLong: true,
    },
  ];
  const possible = refused.filter(({ isLong }) => isFullSize || !isLong);
  it.concurrent.each(possible)("$name ends with 1 and says $code", async ({ code, name, env }) => {
    const { metrics } = await choosePorts({ names: ["metrics"], fixed: {} });
    const logFile = join(system.logFolder, `refused-${code}-${name}.log`);
    const service = startService(name, {
      metricsPort: metrics,
      logFile,
      env: { ...system.environment(name), ...clickhouseEnv("writer"), ...redisEnv(), ...env() },
    });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    const text = readFileSync(logFile, "utf8");
    expect(text).toContain(`"code":"${code}"`);
    expectNoSecret(text);
  });

  it.concurrent("a client that asks a sentinel goes to the server that takes over", async () => {
    const start = async (name: string): Promise<number> => {
      const dir = join(ROOT, ".local", `test-secure-${name}`);
      rmSync(dir, { recursive: true, force: true });
      const { redis: server, stop } = await startStack({ dir, servers: ["redis"] });
      stops.push(stop);
      return Number(new URL(server.url).port);
    };
    const [first, second] = await Promise.all([start("first"), start("second")]);
    await ask(second, `REPLICAOF 127.0.0.1 ${first}`);
    await until("the second has what the first has", 30_000, async () =>
      (await ask(second, "ROLE")).includes("connected"),
    );
    const { sentinel: port } = await choosePorts({ names: ["sentinel"], fixed: {} });
    const sentinel = await createSentinel({
      folder: join(ROOT, ".local/test-secure-sentinel"),
      port,
      name: "main",
      serverPort: first,
      password: PASSWORDS.sentinel,
      env: process.env,
      log: () => undefined,
      onUnexpectedEnd: () => undefined,
    });
    await sentinel.start();
    stops.push(sentinel.stop);
    const asked = createRedis({
      ...readRedisServer({
        REDIS_URL: `redis+sentinel://127.0.0.1:9,localhost:${port}/main`,
        REDIS_SENTINEL_PASSWORD: PASSWORDS.sentinel,
      }),
      log,
    });
    stops.push(asked.stop);
    await asked.start();
    const store = createIdempotencyStore({
      redis: asked,
      secrets: ["a secret"],
      ttlSeconds: 60,
      leaseMs: 1_000,
    });
    const claim = (key: string) => store.claim("acme", key, "x");
    expect(await claim("before")).toMatchObject({ state: "claimed" });
    expect(await ask(first, "DBSIZE")).toBe(":1\r\n");

    await until("the sentinel begins", 30_000, async () => {
      const answer = await ask(port, `AUTH ${PASSWORDS.sentinel}`, "SENTINEL FAILOVER main");
      return answer === "+OK\r\n+OK\r\n";
    });
    await until("the second has taken over", 30_000, async () => {
      // A failover ends the connections of the server that takes over.
      const role = await ask(second, "ROLE").catch(() => "");
      return role.includes("master");
    });
    // The sentinel does the same ten seconds later and ends the connections.
    await ask(first, `REPLICAOF 127.0.0.1 ${second}`);
    await untilItWorks("a claim is accepted", 30_000, () => claim("after"));
    expect(await ask(second, "DBSIZE")).toBe(":2\r\n");
  });
});

const ask = async (port: number, ...lines: string[]): Promise<string> => {
  const socket = connect({ host: "127.0.0.1", port }, () =>
    socket.write(lines.map((line) => `${line}\r\n`).join("")),
  );
  let answer = "";
  try {
    for await (const bytes of socket) {
      answer += String(bytes);
      if (answer.split("\r\n").length > lines.length) break;
    }
  } finally {
    socket.destroy();
  }
  return answer;
};
