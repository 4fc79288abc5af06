import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Environment,
  parseRedisUrl,
  readClickhouseCluster,
  readClickhouseServer,
  readClickhouseUser,
  readKafkaServers,
  readRedisServer,
  readSettings,
  requireClickhouseUser,
} from "../index.ts";
import { makePemFiles } from "./pem.fixture.ts";
import { problemsOf } from "./problems.fixture.ts";

let folder = "";
let files: ReturnType<typeof makePemFiles>;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "pem-"));
  files = makePemFiles(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

const BROKERS = { KAFKA_BROKERS: "a:9092, b:9093" };
const SASL = {
  KAFKA_SASL_MECHANISM: "scram-sha-512",
  KAFKA_SASL_USERNAME: "ingest",
  KAFKA_SASL_PASSWORD: "hunter2",
};

describe("the brokers", () => {
  const kafka = (env: Environment) => problemsOf(() => readKafkaServers({ ...BROKERS, ...env }));

  it("need neither TLS nor credentials", () => {
    expect(readKafkaServers(BROKERS)).toEqual({ brokers: ["a:9092", "b:9093"] });
  });

  it("take an empty variable for an absent one", () => {
    const names = ["TLS", "CA_FILE", "CERT_FILE", "KEY_FILE"].map((name) => `KAFKA_${name}`);
    const sasl = ["MECHANISM", "USERNAME", "PASSWORD"].map((name) => `KAFKA_SASL_${name}`);
    const empty = Object.fromEntries([...names, ...sasl].map((name) => [name, ""]));
    expect(readKafkaServers({ ...BROKERS, ...empty })).toEqual({ brokers: ["a:9092", "b:9093"] });
  });

  it("come with the texts of the files and the credentials", () => {
    const env = { KAFKA_TLS: "on", KAFKA_CA_FILE: files.cert, KAFKA_CERT_FILE: files.cert };
    const [cert, key] = [readFileSync(files.cert, "utf8"), readFileSync(files.key, "utf8")];
    expect(readKafkaServers({ ...BROKERS, ...SASL, ...env, KAFKA_KEY_FILE: files.key })).toEqual({
      brokers: ["a:9092", "b:9093"],
      ssl: { ca: cert, cert, key },
      sasl: { mechanism: "scram-sha-512", username: "ingest", password: "hunter2" },
    });
    expect(readKafkaServers({ ...BROKERS, KAFKA_TLS: "on" }).ssl).toEqual({});
  });

  it.each([
    [{ KAFKA_TLS: "yes" }, "KAFKA_TLS: must be on or off"],
    [{ KAFKA_BROKERS: "a:1,[::1]:9092" }, "KAFKA_BROKERS: must be host:port,host:port,… with names or IPv4"],
    [{ KAFKA_BROKERS: "a:1,b:70000" }, "KAFKA_BROKERS: must be host:port"],
    [{ ...SASL, KAFKA_SASL_PASSWORD: "hunter2\n" }, "KAFKA_SASL_PASSWORD: must not hold a line break"],
    [{ ...SASL, KAFKA_SASL_MECHANISM: "gssapi" }, "KAFKA_SASL_MECHANISM: must be one of plain, "],
    [{ ...SASL, KAFKA_SASL_MECHANISM: "" }, "KAFKA_SASL_MECHANISM: is required with KAFKA_SASL_USERNAME"],
    [{ ...SASL, KAFKA_SASL_PASSWORD: "" }, "KAFKA_SASL_PASSWORD: is required with KAFKA_SASL_MECHANISM"],
    [{ ...SASL, KAFKA_SASL_USERNAME: "" }, "KAFKA_SASL_USERNAME: is required with KAFKA_SASL_MECHANISM"],
  ])("refuse %o", (env, problem) => {
    expect(kafka(env)[0]).toContain(problem);
  });

  it("refuse files that do not fit", () => {
    const on = (env: Environment) => kafka({ KAFKA_TLS: "on", ...env });
    const pair = { KAFKA_CERT_FILE: files.cert, KAFKA_KEY_FILE: files.key };
    expect(on(pair)).toEqual([]);
    expect(kafka({ KAFKA_CA_FILE: files.cert })).toEqual([
      "KAFKA_CA_FILE: counts only with KAFKA_TLS=on; set that, or leave this out",
    ]);
    expect(on({ KAFKA_CERT_FILE: files.cert })).toEqual(["KAFKA_KEY_FILE: is required with KAFKA_CERT_FILE"]);
    expect(on({ KAFKA_KEY_FILE: files.key })).toEqual(["KAFKA_CERT_FILE: is required with KAFKA_KEY_FILE"]);
    expect(on({ ...pair, KAFKA_KEY_FILE: files.other })).toEqual([
      "KAFKA_KEY_FILE: is not the key of the certificate in KAFKA_CERT_FILE",
    ]);
    expect(on({ ...pair, KAFKA_KEY_FILE: files.cert })[0]).toMatch(/^KAFKA_KEY_FILE: .* no private key/);
    expect(on({ KAFKA_CA_FILE: files.key })[0]).toMatch(/^KAFKA_CA_FILE: .* no certificate/);
    expect(on({ KAFKA_CA_FILE: files.damaged })[0]).toMatch(/^KAFKA_CA_FILE: .* damaged/);
    expect(on({ KAFKA_CA_FILE: files.nothing })[0]).toMatch(/^KAFKA_CA_FILE: there is no such file/);
    expect(on({ KAFKA_CA_FILE: folder })[0]).toMatch(/^KAFKA_CA_FILE: unreadable \(EISDIR\)/);
  });

  it("are refused without any value in the message", () => {
    const wrong = { KAFKA_TLS: "hunter2", KAFKA_SASL_MECHANISM: "hunter2" };
    const secret = { KAFKA_TLS: "on", KAFKA_KEY_FILE: "hunter2", KAFKA_CERT_FILE: files.text };
    for (const env of [wrong, secret]) expect(kafka({ ...SASL, ...env }).join()).not.toContain("hunter2");
  });
});

describe("ClickHouse", () => {
  const URL = "https://clickhouse:8443/export";
  const read = (env: Environment) => readClickhouseServer({ CLICKHOUSE_URL: URL, ...env });

  it("is known by its address alone, or with user, password and authority beside it", () => {
    expect(read({ CLICKHOUSE_URL: "http://u:p@h:1/d" })).toEqual({ url: "http://u:p@h:1/d" });
    const beside = { CLICKHOUSE_USER: "writer", CLICKHOUSE_PASSWORD: "p@/:?#%" };
    expect(read({ ...beside, CLICKHOUSE_CA_FILE: files.cert })).toEqual({
      url: "https://writer:p%40%2F%3A%3F%23%25@clickhouse:8443/export",
      ca: readFileSync(files.cert, "utf8"),
    });
    expect(read({ CLICKHOUSE_URL: "https://w@h/d", CLICKHOUSE_PASSWORD: "x" }).url).toBe("https://w:x@h/d");
    const empty = { CLICKHOUSE_USER: "", CLICKHOUSE_PASSWORD: "", CLICKHOUSE_CA_FILE: "" };
    expect(read({ CLICKHOUSE_URL: "http://[::1]:8123/d", ...empty })).toEqual({ url: "http://[::1]:8123/d" });
  });

  it.each([
    [{ CLICKHOUSE_URL: "ftp://h" }, "CLICKHOUSE_URL: must be http:"],
    [{ CLICKHOUSE_URL: "https://w:hunter2%@h/d" }, "CLICKHOUSE_URL: must have %25 where"],
    [{ CLICKHOUSE_PASSWORD: "hunter2\n" }, "CLICKHOUSE_PASSWORD: must not hold a line break"],
    [
      { CLICKHOUSE_URL: "https://w:x@h/d", CLICKHOUSE_PASSWORD: "hunter2" },
      "CLICKHOUSE_PASSWORD: CLICKHOUSE_URL",
    ],
    [{ CLICKHOUSE_URL: "https://w:x@h/d", CLICKHOUSE_USER: "hunter2" }, "CLICKHOUSE_USER: CLICKHOUSE_URL"],
    [{ CLICKHOUSE_URL: "http://h/d", CLICKHOUSE_CA_FILE: "hunter2" }, "CLICKHOUSE_CA_FILE: counts only with"],
    [{ CLICKHOUSE_CA_FILE: "hunter2" }, "CLICKHOUSE_CA_FILE: there is no such file"],
  ])("refuses %o", (env, problem) => {
    const problems = problemsOf(() => read(env));
    expect(problems).toEqual([expect.stringContaining(problem)]);
    expect(problems.join()).not.toContain("hunter2");
  });

  it("is known by another user beside the address of the first one", () => {
    const env = { CLICKHOUSE_URL: "https://migrator:p@ss@h:8443/d", CLICKHOUSE_CA_FILE: files.cert };
    const user = (more: Environment) => readClickhouseUser({ ...env, ...more }, "WRITER");
    const beside = { CLICKHOUSE_WRITER_USER: "writer", CLICKHOUSE_WRITER_PASSWORD: "p@/:?#%" };
    expect(user({ CLICKHOUSE_WRITER_URL: "", CLICKHOUSE_WRITER_USER: "" })).toBeNull();
    expect(user(beside)).toEqual({
      url: "https://writer:p%40%2F%3A%3F%23%25@h:8443/d",
      ca: readFileSync(files.cert, "utf8"),
    });
    expect(user({ ...beside, CLICKHOUSE_WRITER_URL: "http://other/e" })?.url).toMatch(
      /^http:\/\/writer:.*@other\/e$/,
    );
    const problems = (more: Environment) => problemsOf(() => user(more));
    expect(problems({ CLICKHOUSE_WRITER_PASSWORD: "hunter2" })).toEqual([
      "CLICKHOUSE_WRITER_USER: is required with CLICKHOUSE_WRITER_PASSWORD",
    ]);
    expect(problems({ ...beside, CLICKHOUSE_WRITER_URL: "http://writer:hunter2@h/d" })).toEqual([
      "CLICKHOUSE_WRITER_USER: CLICKHOUSE_WRITER_URL holds a username too; leave one of the two out",
      "CLICKHOUSE_WRITER_PASSWORD: CLICKHOUSE_WRITER_URL holds a password too; leave one of the two out",
    ]);
    expect(problems({ ...beside, CLICKHOUSE_URL: "" })).toEqual(["CLICKHOUSE_URL: is required"]);
  });

  it("takes the address of the other user for one that a process needs too", () => {
    const readClickhouseIntake = (env: Environment) => requireClickhouseUser(env, "INTAKE");
    const intake = { CLICKHOUSE_INTAKE_USER: "intake", CLICKHOUSE_INTAKE_PASSWORD: "x" };
    const env = { CLICKHOUSE_URL: "https://reader:y@h/d", CLICKHOUSE_CA_FILE: files.cert };
    expect(readClickhouseIntake({ ...env, ...intake })).toMatchObject({
      url: "https://intake:x@h/d",
      ca: expect.stringContaining("BEGIN") as string,
    });
    const own = { CLICKHOUSE_INTAKE_URL: "https://intake@other/d", CLICKHOUSE_INTAKE_PASSWORD: "x" };
    expect(readClickhouseIntake({ ...env, ...own }).url).toBe("https://intake:x@other/d");
    expect(problemsOf(() => readClickhouseIntake(env))).toEqual([
      expect.stringMatching(/^CLICKHOUSE_INTAKE_URL: is required, or CLICKHOUSE_INTAKE_USER/),
    ]);
  });
});

describe("Redis", () => {
  const read = (env: Environment) => readRedisServer({ REDIS_URL: "redis://redis:6379", ...env });

  it("is known by its address alone, or with user, password and authority beside it", () => {
    expect(read({})).toEqual({ url: "redis://redis:6379" });
    const empty = { REDIS_USERNAME: "", REDIS_PASSWORD: "", REDIS_SENTINEL_PASSWORD: "", REDIS_CA_FILE: "" };
    expect(read(empty)).toEqual({ url: "redis://redis:6379" });
    const env = { REDIS_URL: "rediss://redis", REDIS_CA_FILE: files.cert };
    expect(read({ ...env, REDIS_USERNAME: "jobs", REDIS_PASSWORD: "p@ss" })).toEqual({
      url: "rediss://jobs:p%40ss@redis",
      ca: readFileSync(files.cert, "utf8"),
    });
    const sentinels = "redis+sentinel://one:26379,two/main/2";
    expect(read({ REDIS_URL: sentinels, REDIS_PASSWORD: "x", REDIS_SENTINEL_PASSWORD: "y" })).toEqual({
      url: "redis+sentinel://:x@one:26379,two/main/2",
      sentinelPassword: "y",
    });
  });

  it.each([
    [{ REDIS_URL: "http://redis" }, "REDIS_URL: must be redis:"],
    [{ REDIS_URL: "redis://one:1,two:2" }, "REDIS_URL: must be redis:"],
    [{ REDIS_URL: "redis+sentinel://one:1,two:2" }, "REDIS_URL: must be redis:"],
    [{ REDIS_URL: "redis://:hunter2@2@h" }, "REDIS_URL: must be redis:"],
    [{ REDIS_URL: "rediss://h?tls=" }, "REDIS_URL: must be redis:"],
    [{ REDIS_PASSWORD: "hunter2\n" }, "REDIS_PASSWORD: must not hold a line break"],
    [
      { REDIS_URL: "redis://:x@h", REDIS_PASSWORD: "hunter2" },
      "REDIS_PASSWORD: REDIS_URL holds a password too",
    ],
    [{ REDIS_USERNAME: "jobs" }, "REDIS_PASSWORD: is required with REDIS_USERNAME"],
    [{ REDIS_CA_FILE: "hunter2" }, "REDIS_CA_FILE: counts only with rediss:"],
    [{ REDIS_SENTINEL_PASSWORD: "hunter2" }, "REDIS_SENTINEL_PASSWORD: counts only with redis+sentinel:"],
  ])("refuses %o", (env, problem) => {
    const problems = problemsOf(() => read(env));
    expect(problems).toEqual([expect.stringContaining(problem)]);
    expect(problems.join()).not.toContain("hunter2");
  });

  it.each([
    ["redis://h", { tls: false, hosts: [{ host: "h", port: 6379 }], name: null, database: 0 }],
    ["rediss://u:p%40@h:1/3", { tls: true, username: "u", password: "p@", database: 3 }],
    ["redis://[::1]:7", { hosts: [{ host: "::1", port: 7 }] }],
    [
      "rediss+sentinel://:p@a:1,[::2]/main",
      {
        tls: true,
        password: "p",
        name: "main",
        hosts: [
          { host: "a", port: 1 },
          { host: "::2", port: 26_379 },
        ],
      },
    ],
  ])("reads %s", (url, parts) => {
    expect(parseRedisUrl(url)).toMatchObject(parts);
  });

  it.each([
    "redis://",
    "redis://h:99999",
    "redis://h/x",
    "redis://h/1/2",
    "redis+sentinel://h/",
    "redis://%zz@h",
  ])("takes %s for none", (url) => {
    expect(parseRedisUrl(url)).toBeUndefined();
  });
});

it("reports the problems of all servers at once, each once", () => {
  const env = { CLICKHOUSE_URL: "ftp://h", CLICKHOUSE_INTAKE_USER: "intake", REDIS_URL: "redis://h" };
  const problems = problemsOf(() =>
    readSettings(
      {
        kafka: readKafkaServers,
        clickhouse: {
          server: readClickhouseServer,
          intake: (given: Environment) => requireClickhouseUser(given, "INTAKE"),
        },
        redis: readRedisServer,
      },
      env,
    ),
  );
  expect(problems).toEqual(["KAFKA_BROKERS: is required", expect.stringMatching(/^CLICKHOUSE_URL: must be/)]);
});

describe("readClickhouseCluster", () => {
  const shards = "http://one:8123, https://two";

  it("knows a single server, a cluster that is named as one, and shards that are named one by one", () => {
    expect(readClickhouseCluster({ CLUSTER: "" })).toEqual({ cluster: null });
    expect(readClickhouseCluster({ CLUSTER: "main" })).toEqual({ cluster: "main" });
    expect(readClickhouseCluster({ CLUSTER: "main", CLICKHOUSE_SHARD_URLS: shards })).toEqual({
      cluster: "main",
      shards: ["http://one:8123", "https://two"],
    });
  });

  it.each([
    [{ CLICKHOUSE_SHARD_URLS: shards }, "CLUSTER"],
    [{ CLUSTER: "a'b" }, "CLUSTER"],
    [{ CLUSTER: "main", CLICKHOUSE_SHARD_URLS: "one:8123" }, "CLICKHOUSE_SHARD_URLS"],
    [{ CLUSTER: "main", CLICKHOUSE_SHARD_URLS: "http://user:password@one:8123" }, "CLICKHOUSE_SHARD_URLS"],
    [{ CLUSTER: "main", CLICKHOUSE_SHARD_URLS: "http://one:8123/database" }, "CLICKHOUSE_SHARD_URLS"],
    [{ CLUSTER: "main", CLICKHOUSE_SHARD_URLS: "http://one,http://one" }, "CLICKHOUSE_SHARD_URLS"],
  ])("refuses %j", (env, name) => {
    const problems = problemsOf(() => readClickhouseCluster(env));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name}: `));
  });
});
