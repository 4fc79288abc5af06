import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inspect, promisify } from "node:util";
import { createAdmin, createProducer, type Producer } from "@conversation-export/bus";
import { choosePorts } from "@conversation-export/local-stack";
import { createLogger, readKafkaServers } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuthority, kafkaKeystore } from "../outside/certificates.ts";
import { startTokenEndpoint, type TestTokenEndpoint } from "../outside/token-endpoint.ts";
import { handMade } from "../sample/hand-made.ts";
import { startService } from "../system/service-process.ts";
import { startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = join(ROOT, ".local/test-token-certificates");
const SECRET = "token secret@P:/%2F+?#&-1";
const WRONG = "wrong secret@P:/%2F+?#&-2";
const ISSUER = "https://issuer.test";
const SCOPE = "kafka";
const AUDIENCE = "kafka-test";
/** The shortest lifetime served; clients use half, and a login's session is shorter still. */
const LIVES_SECONDS = 30;
const REAUTHENTICATE_MS = 16_000;
const log = createLogger({ service: "test", level: "silent" });
type Env = Readonly<Record<string, string>>;

describe("logins to Kafka by a token", () => {
  let system: System;
  let endpoint: TestTokenEndpoint;
  let stranger: TestTokenEndpoint;
  let env: Env;

  beforeAll(async () => {
    mkdirSync(FOLDER, { recursive: true });
    const authority = createAuthority(FOLDER);
    const server = authority.issue("server");
    const settings = {
      clientId: "export",
      clientSecret: SECRET,
      issuer: ISSUER,
      audience: AUDIENCE,
      livesSeconds: LIVES_SECONDS,
    };
    endpoint = await startTokenEndpoint({ ...settings, identity: server });
    const identity = createAuthority(FOLDER, "stranger").issue("strangers-server");
    stranger = await startTokenEndpoint({ ...settings, identity });
    const keys = join(FOLDER, "jwks.json");
    writeFileSync(keys, endpoint.jwks);
    const keysUrl = pathToFileURL(keys).href;
    const { port } = await choosePorts({ names: ["port"], fixed: {} });
    const oauth = "org.apache.kafka.common.security.oauthbearer";
    const listener = "listener.name.sasl_ssl";
    system = await startSystem("test-token", {
      kafkaListeners: {
        ports: { SASL_SSL: port },
        javaOptions: [`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${keysUrl}`],
        properties: {
          ...kafkaKeystore(server),
          "sasl.enabled.mechanisms": "OAUTHBEARER",
          [`${listener}.oauthbearer.sasl.jaas.config`]: `${oauth}.OAuthBearerLoginModule required;`,
          [`${listener}.oauthbearer.sasl.server.callback.handler.class`]: `${oauth}.OAuthBearerValidatorCallbackHandler`,
          [`${listener}.oauthbearer.connections.max.reauth.ms`]: String(REAUTHENTICATE_MS),
          [`${listener}.sasl.oauthbearer.jwks.endpoint.url`]: keysUrl,
          [`${listener}.sasl.oauthbearer.expected.audience`]: AUDIENCE,
          [`${listener}.sasl.oauthbearer.expected.issuer`]: ISSUER,
          [`${listener}.sasl.oauthbearer.clock.skew.seconds`]: "1",
        },
      },
    });
    env = {
      KAFKA_BROKERS: `localhost:${port}`,
      KAFKA_TLS: "on",
      KAFKA_CA_FILE: authority.certPath,
      KAFKA_SASL_MECHANISM: "oauthbearer",
      KAFKA_OAUTH_TOKEN_URL: endpoint.url,
      KAFKA_OAUTH_CLIENT_ID: "export",
      KAFKA_OAUTH_CLIENT_SECRET: SECRET,
      KAFKA_OAUTH_SCOPE: SCOPE,
      KAFKA_OAUTH_EXTENSIONS: "logicalCluster=lkc-1&identityPoolId=pool-1",
    };
  });
  afterAll(async () => {
    await system?.stop();
    await Promise.all([endpoint?.close(), stranger?.close()]);
  });

  const expectNoSecret = (text: string): void => {
    for (const secret of [SECRET, WRONG]) {
      for (const form of [secret, encodeURIComponent(secret)]) expect(text).not.toContain(form);
    }
    expect(text).not.toMatch(/eyJ[\w-]{10}/);
  };

  const ops = async (more: Env, ...args: string[]) => {
    const done = await promisify(execFile)(
      process.execPath,
      [join(ROOT, "services/ops/src/main.ts"), ...args],
      {
        env: {
          PATH: process.env["PATH"],
          CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
          SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
          CLICKHOUSE_URL: system.stack.clickhouse.url("migrator"),
          REDIS_URL: system.stack.redis.url,
          ...env,
          ...more,
        },
      },
    ).then(
      (output) => ({ code: 0, ...output }),
      (error: unknown) => error as { code: number; stdout: string; stderr: string },
    );
    expectNoSecret(done.stdout + done.stderr);
    return done;
  };

  const kafkaFound = async (more: Env): Promise<string> => {
    const { stdout } = await ops(more, "doctor", "--json");
    const findings = JSON.parse(stdout) as { area: string; state: string; found: string }[];
    const first = findings.find(({ area }) => area === "Kafka");
    return `${first?.state}: ${first?.found}`;
  };

  it("events flow over many logins, while tokens end, and while the endpoint is away for a time", async () => {
    const { stack } = system;
    const logFile = join(system.logFolder, "ingest.log");
    const ingest = await system.service("ingest", env);
    let isGone = false;
    void ingest.exited.then(() => {
      isGone = true;
    });
    const producer = createProducer({ ...readKafkaServers(env), clientId: "test", log });
    await producer.start();
    let sent = 0;
    const send = async (through: Producer): Promise<void> => {
      sent += 1;
      const event = handMade({
        kind: "conversation",
        client: "acme",
        id: `token-${sent}`,
        time: new Date().toISOString(),
        data: { _id: `token-${sent}`, date_created: "2026-10-04T12:00:00Z" },
      });
      await through.send(TOPICS.conversation, [
        { key: event.key, value: event.value, headers: event.headers },
      ]);
    };
    const stored = async (): Promise<number> =>
      Number(
        await runSql(
          stack.clickhouse.url("migrator"),
          "SELECT uniqExact(conversation_id) FROM conversations FORMAT TSV",
        ),
      );
    const flow = async (what: string): Promise<void> => {
      await send(producer);
      await until(`${what}: all is stored`, 60_000, async () => (await stored()) === sent);
    };

    await flow("at first");
    const startedAt = performance.now();
    const before = endpoint.given(SCOPE);
    const seconds = (): number => (performance.now() - startedAt) / 1000;
    while (seconds() < LIVES_SECONDS + 10) await flow("past the end of the first token");
    // Producer and ingest are two processes with one token each, however many connections.
    const inTime = Math.ceil(seconds() / (LIVES_SECONDS * 0.4)) + 1;
    expect(endpoint.given(SCOPE) - before).toBeGreaterThanOrEqual(4);
    expect(endpoint.given(SCOPE) - before).toBeLessThanOrEqual(2 * inTime);

    endpoint.mood = 503;
    await until("a renewal has failed", 40_000, () =>
      readFileSync(logFile, "utf8").includes("renewing the token for Kafka failed"),
    );
    // Sessions end before a token that is not renewed; then no login is possible.
    await until("a login has failed", 60_000, () =>
      readFileSync(logFile, "utf8")
        .split("\n")
        .some((line) => line.includes("answers 503") && !line.includes("is not renewed yet")),
    );
    await send(system.producer);
    endpoint.mood = "well";
    await flow("when the endpoint is back");

    const logged = (text: string): boolean => readFileSync(logFile, "utf8").includes(text);
    endpoint.subject = "another-session";
    await until("a session has met a token of another principal", 60_000, () =>
      logged("takes a token of another principal on a new connection alone"),
    );
    await flow("with another principal");

    endpoint.audience = "another";
    await until("a token is refused", 60_000, () =>
      logged("login to Kafka failed, retrying with a new token"),
    );
    endpoint.audience = AUDIENCE;
    await flow("when brokers accept tokens again");

    expect(isGone).toBe(false);
    await producer.stop();
    expectNoSecret(readFileSync(logFile, "utf8"));
  });

  it("a command asks for one token, also when it opens several connections", async () => {
    // Ingest of the test before still renews its own.
    const scope = "doctor";
    expect(await kafkaFound({ KAFKA_OAUTH_SCOPE: scope })).toMatch(/^ok: answer at localhost:\d+$/);
    expect(endpoint.given(scope)).toBe(1);
  });

  it("doctor says why there is no login", async () => {
    const wrong = { KAFKA_OAUTH_CLIENT_SECRET: WRONG };
    expect(await kafkaFound(wrong)).toMatch(
      /^problem: there is no token for Kafka from localhost:\d+: check .*CLIENT_SECRET \(.*answers 401: invalid_client/,
    );
    expect(await kafkaFound({ KAFKA_OAUTH_TOKEN_URL: "https://localhost:1/token" })).toMatch(
      /^problem: there is no token .*does not answer \(ECONNREFUSED\)/,
    );
    endpoint.audience = "another";
    const refused = await kafkaFound({});
    endpoint.audience = AUDIENCE;
    expect(refused).toMatch(/^problem: Kafka refuses the token of export: check .*invalid_token/);
    endpoint.mood = "silent";
    const silent = await kafkaFound({});
    endpoint.mood = "well";
    expect(silent).toMatch(/^problem: there is no token .*does not answer within 5 s/);
  });

  it.each([
    ["bus_token", "a wrong secret", () => ({ KAFKA_OAUTH_CLIENT_SECRET: WRONG })],
    ["bus_token", "an endpoint of an unknown authority", () => ({ KAFKA_OAUTH_TOKEN_URL: stranger.url })],
  ])("a client ends with %s for %s", async (code, _what, more) => {
    const admin = createAdmin({ ...readKafkaServers({ ...env, ...more() }), clientId: "test", log });
    const refusal: unknown = await admin.start().catch((error: unknown) => error);
    await admin.stop();
    expect(refusal).toMatchObject({ code, retryable: false });
    expectNoSecret(inspect(refusal, { depth: 9 }));
  });

  it("a service whose token the brokers refuse ends with 1 and says it", async () => {
    const { metrics } = await choosePorts({ names: ["metrics"], fixed: {} });
    const logFile = join(system.logFolder, "refused.log");
    endpoint.audience = "another";
    const service = startService("ingest", {
      metricsPort: metrics,
      logFile,
      env: { ...system.environment("ingest"), ...env },
    });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    endpoint.audience = AUDIENCE;
    const text = readFileSync(logFile, "utf8");
    expect(text).toContain('"code":"bus_credentials"');
    expect(text).toContain("refuses the token: invalid_token");
    expectNoSecret(text);
  });
});
