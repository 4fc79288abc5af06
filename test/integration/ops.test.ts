import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Admin, createAdmin, createProducer } from "@conversation-export/bus";
import { createLogger, parseKey } from "@conversation-export/runtime";
import { createReader, type Reader } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpsEnding, type RunningOps, startOps } from "../system/ops.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { createSessions } from "../system/warehouse-sessions.ts";

const projectFolder = join(import.meta.dirname, "..", "..");
const main = join(projectFolder, "services", "ops", "src", "main.ts");
const TOPICS = ["conversations", "messages", "end-users"];
const CLOSED_PORT = "127.0.0.1:9";

let stack: TestStack;
let reader: Reader;
let admin: Admin;
const runs: RunningOps[] = [];

function ops(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<OpsEnding> {
  const common = {
    OPERATOR: "jane@example.com",
    CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
    KAFKA_BROKERS: stack.kafka.brokers.join(","),
    REDIS_URL: stack.redis.url,
    CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
  };
  const run = startOps({ ...common, ...env }, ...words);
  runs.push(run);
  return run.ended;
}

async function output(words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await ops(words);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout;
}

async function complaint(
  words: readonly string[],
  env?: Readonly<Record<string, string>>,
  expected = 1,
): Promise<string> {
  const { code, stdout, stderr } = await ops(words, env);
  expect(stdout).toBe("");
  expect(code).toBe(expected);
  expect(stderr).toMatch(/^export-ops: [^\n]+\n$/);
  return stderr;
}

const sessions = createSessions();

beforeAll(async () => {
  stack = await startTestStack({ servers: ["kafka", "clickhouse", "redis"] });
  reader = createReader({
    session: sessions.open(stack.clickhouse.url("reader")),
    lookups: sessions.open(stack.clickhouse.url("lookup")),
  });
  const log = createLogger({ service: "test", level: "silent" });
  admin = createAdmin({ brokers: stack.kafka.brokers, clientId: "test", log });
  await admin.start();
});

afterAll(async () => {
  await admin?.stop();
  await sessions.close();
  await stack?.stop();
});

describe("migrate", () => {
  it("is what the other commands ask for on an empty database", async () => {
    const lines = await Promise.all([
      complaint(["clients", "list"]),
      complaint(["keys", "create", "--client", "acme"]),
    ]);
    for (const line of lines) expect(line).toContain("export-ops migrate");
  });

  it("applies every migration once and says so", async () => {
    const { stdout, stderr, code } = await ops(["migrate"]);
    expect(code).toBe(0);
    const first = stdout.trim().split("\n");
    expect(stderr.trim().split("\n")).toEqual(first.map((line) => line.replace("applied ", "applying")));
    expect(first.length).toBeGreaterThan(0);
    expect(first.every((line) => /^applied {4}\d{4}-[\w-]+\.sql$/.test(line))).toBe(true);
    const second = (await output(["migrate"])).trim().split("\n");
    expect(second).toEqual(first.map((line) => line.replace("applied  ", "unchanged")));
  });

  it("waits for a run that holds the lock", async () => {
    const url = stack.clickhouse.url("migrator");
    await runSql(url, "CREATE TABLE schema_lock (owner String) ENGINE = Memory");
    const run = startOps({ CLICKHOUSE_URL: url, OPERATOR: "jane" }, "migrate");
    await until("it waits", 10_000, () => run.stderr().includes("another migration runs"));
    expect(run.stdout()).toBe("");
    await runSql(url, "DROP TABLE schema_lock");
    expect(await run.ended).toMatchObject({ code: 0 });
  });
});

describe("topics create", () => {
  it("makes topics for events and dead letters, and leaves those that are there", async () => {
    const env = { TOPIC_MESSAGES: "chat.messages" };
    const made = await ops(["topics", "create", "--partitions", "2", "--json"], env);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    const names = ["conversations", "chat.messages", "end-users"];
    const rows = JSON.parse(made.stdout) as { topic: string; partitions: number; state: string }[];
    expect(rows.map(({ topic }) => topic)).toEqual([
      ...names,
      ...names.map((name) => `${name}.dead-letter`),
      "sms-triggers",
    ]);
    expect(rows.every(({ partitions, state }) => partitions === 2 && state === "created")).toBe(true);

    const again = await ops(["topics", "create", "--partitions", "3"]);
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(/^conversations {2,}2 {2,}1 .* unchanged$/m);
    expect(again.stdout).toMatch(/^messages {2,}3 {2,}1 .* created$/m);
    expect(again.stderr).toContain("warning: conversations stays as it is: it has 2 partitions, not 3");
    expect(again.stderr).not.toContain("messages stays");
    expect(await admin.fetchOffsets("conversations")).toHaveLength(2);
    expect(await admin.fetchOffsets("messages.dead-letter")).toHaveLength(3);
  });

  it("lets the broker date the messages and has room for reasons beside the largest payload", async () => {
    for (const topic of TOPICS) {
      const events = await admin.topicConfig(topic);
      const deadLetters = await admin.topicConfig(`${topic}.dead-letter`);
      expect(events["message.timestamp.type"]).toBe("LogAppendTime");
      expect(Number(deadLetters["max.message.bytes"])).toBe(2 * Number(events["max.message.bytes"]));
    }
  });

  it("says which topic Kafka does not make, and why", async () => {
    const words = ["topics", "create", "--replication", "3", "--timeout", "2"];
    const line = await complaint(words, { TOPIC_END_USERS: "too-many" });
    expect(line).toContain("too-many");
    expect(line).toMatch(/replication/i);
  });
});

describe("offsets move", () => {
  it("moves back what is committed, and nothing else", async () => {
    const log = createLogger({ service: "test", level: "silent" });
    const producer = createProducer({ brokers: stack.kafka.brokers, clientId: "test", log });
    await producer.start();
    const messages = Array.from({ length: 40 }, (_, index) => ({ key: `acme:${index}`, value: "no event" }));
    await producer.send("conversations", messages);
    await producer.stop();
    const group = "moved";
    await admin.setCommitted(group, [{ topic: "conversations", partition: 0, offset: 5 }]);
    const committed = async () =>
      (await admin.fetchLag(group, ["conversations"])).map((one) => one.committed);
    const move = (to: string) => ops(["offsets", "move", "--to", to, "--yes"], { KAFKA_GROUP_ID: group });

    expect(await move(new Date().toISOString())).toMatchObject({ code: 0 });
    expect(await committed()).toEqual([5, null]);
    expect(await move("1970-01-01")).toMatchObject({ code: 0 });
    expect(await committed()).toEqual([0, null]);
  });
});

describe("clients and keys", () => {
  type Key = { key: string; key_id: string; client_id: string; scopes: string[]; created_at: string };
  const list = async (...words: string[]) =>
    JSON.parse(await output([...words, "--json"])) as Record<string, unknown>[];
  const createKey = async (...words: string[]) =>
    JSON.parse(await output(["keys", "create", ...words, "--json"])) as Key;
  const createLimited = async (): Promise<Key> => {
    const limits = ["--rate-limit", "conversations=10/1s,100/1m", "--rate-limit", "end_users=off"];
    await output(["clients", "create", "limited", ...limits]);
    return await createKey("--client", "limited", "--scopes", "export,end_users,compliance,campaigns");
  };
  const find = (key: string) => reader.findKey(parseKey(key)?.hash ?? "");

  it("give a key that opens its client's records until it is revoked", async () => {
    expect(await output(["clients", "create", "acme"])).toMatch(
      /^created the client acme\nif its job .*`--link-bounds advancing`.*\n$/,
    );
    const key = await createKey("--client", "acme");
    expect(Object.keys(key)).toEqual(["key", "key_id", "client_id", "scopes", "created_at", "expires_at"]);
    expect(key).toMatchObject({ client_id: "acme", scopes: ["export"] });
    expect(await find(key.key)).toMatchObject({
      clientId: "acme",
      keyId: key.key_id,
      scopes: ["export"],
      clientDeleted: false,
      linkBounds: null,
    });

    expect(await output(["keys", "revoke", key.key_id])).toContain(key.key_id);
    expect(await find(key.key)).toBeNull();
    expect(await complaint(["keys", "revoke", key.key_id])).toContain(key.key_id);
    expect(await list("keys", "list", "--client", "acme")).toMatchObject([{ state: "revoked" }]);
  });

  it("give a key that ends, into a file of its owner alone or as a Secret", async () => {
    await output(["clients", "create", "ending"]);
    const path = join(stack.dir, "ending.key");
    const made = ["keys", "create", "--client", "ending", "--expires", "90d"];
    const reported = await output([...made, "--out", path]);
    const key = (await readFile(path, "utf8")).trim();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(reported).not.toContain(key);
    expect(await find(key)).toMatchObject({ clientId: "ending" });
    expect(await complaint([...made, "--out", path])).toContain("name a new file");
    const manifest = await output([...made, "--secret", "ending-key"]);
    expect(manifest).toMatch(
      /^apiVersion: v1\nkind: Secret\nmetadata:\n {2}name: ending-key\n[^]*\n {2}key: \S+\n$/,
    );
    expect(await find(/key: (\S+)/.exec(manifest)?.[1] ?? "")).toMatchObject({ clientId: "ending" });

    const [one, ...others] = await list("keys", "list", "--client", "ending");
    expect(others).toHaveLength(1);
    expect(one).toMatchObject({ state: "active", age_days: 0 });
    const days = (Date.parse(String(one?.["expires_at"])) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(89.9);
    expect(days).toBeLessThan(90);
    expect(await output(["keys", "list", "--client", "ending"])).toMatch(/ 0 days +20\d\d-/);
  });

  it("print a key once and store its hash alone", async () => {
    await output(["clients", "create", "once"]);
    const [key = ""] = (
      await output(["keys", "create", "--client", "once", "--label", "nightly copy"])
    ).split("\n");
    expect(await find(key)).toMatchObject({ clientId: "once" });
    const table = await output(["keys", "list", "--client", "once"]);
    expect(table).toContain("nightly copy");
    expect(table).not.toContain(key);
    const rows = await runSql(stack.clickhouse.url("migrator"), "SELECT * FROM api_keys FORMAT JSONEachRow");
    expect(rows).toContain(parseKey(key)?.hash);
    expect(rows).not.toContain(key.split("_")[1]);
  });

  it("allow several keys with scopes, and list those of one client", async () => {
    expect(await output(["clients", "create", "globex", "--link-bounds", "advancing"])).toBe(
      "created the client globex\n",
    );
    const [one, two] = await Promise.all([
      createKey("--client", "globex", "--scopes", "export,end_users"),
      createKey("--client", "globex"),
    ]);
    expect(await find(one.key)).toMatchObject({ linkBounds: "advancing", scopes: ["export", "end_users"] });
    const [own, all] = await Promise.all([list("keys", "list", "--client", "globex"), list("keys", "list")]);
    expect(new Set(own.map((row) => row["key_id"]))).toEqual(new Set([one.key_id, two.key_id]));
    expect(all.length).toBeGreaterThan(2);
  });

  it("keep the keys of a deleted client, which say that it is gone, and revive them with it", async () => {
    await output(["clients", "create", "initech"]);
    const { key } = await createKey("--client", "initech");
    await output(["clients", "delete", "initech"]);
    expect(await find(key)).toMatchObject({ clientDeleted: true });
    const [clients, again, refused] = await Promise.all([
      list("clients", "list"),
      complaint(["clients", "delete", "initech"]),
      complaint(["keys", "create", "--client", "initech"]),
    ]);
    expect(clients).toContainEqual(expect.objectContaining({ client_id: "initech", state: "deleted" }));
    expect(again).toContain("deleted already");
    expect(refused).toContain("clients create initech");
    await output(["clients", "create", "initech"]);
    expect(await find(key)).toMatchObject({ clientDeleted: false });
  });

  it("keep the settings of a client that differ from the configuration", async () => {
    const { key } = await createLimited();
    const limits = async () => (await find(key))?.rateLimits;
    expect(await limits()).toEqual({
      conversations: [
        { requests: 10, seconds: 1 },
        { requests: 100, seconds: 60 },
      ],
      end_users: [],
    });
    const said = await output(["clients", "set", "limited", "--rate-limit", "messages=5/1m"]);
    expect(said).toContain("conversations=10/1s,100/1m end_users=off messages=5/1m");
    const words = [
      "--rate-limit",
      "conversations=default",
      "--rate-limit",
      "end_users=default",
      "--link-bounds",
      "same",
    ];
    expect(JSON.parse(await output(["clients", "set", "limited", ...words, "--json"]))).toMatchObject({
      client_id: "limited",
      link_bounds: "same",
      rate_limits: { messages: "5/1m" },
    });
    expect(await find(key)).toMatchObject({
      linkBounds: "same",
      rateLimits: { messages: [{ requests: 5, seconds: 60 }] },
    });
    await output(["clients", "set", "limited", "--link-bounds", "default"]);
    expect(await find(key)).toMatchObject({ linkBounds: null });
    const [rows, table] = await Promise.all([list("clients", "list"), output(["clients", "list"])]);
    expect(rows).toContainEqual(
      expect.objectContaining({ client_id: "limited", link_bounds: null, rate_limits: { messages: "5/1m" } }),
    );
    expect(table).toMatch(/^limited +active +- +messages=5\/1m /m);
    await output(["clients", "delete", "limited"]);
    const [gone, unknown] = await Promise.all([
      complaint(["clients", "set", "limited", "--link-bounds", "same"]),
      complaint(["clients", "set", "nobody", "--link-bounds", "same"]),
    ]);
    expect(gone).toContain("is deleted");
    expect(unknown).toContain("no client nobody");
  });

  it("say what is wrong with a name", async () => {
    const lines = await Promise.all([
      complaint(["clients", "create", "acme"]),
      complaint(["clients", "delete", "nobody"]),
      complaint(["keys", "create", "--client", "nobody"]),
      complaint(["keys", "list", "--client", "nobody"]),
    ]);
    expect(lines[0]).toContain("acme exists already");
    for (const line of lines.slice(1)) expect(line).toContain("no client nobody");
  });
});

describe("campaigns", () => {
  const list = async (...words: string[]) =>
    JSON.parse(await output(["campaigns", "list", ...words, "--json"])) as Record<string, unknown>[];

  it("are registered for a client, listed, deleted and brought back with other languages", async () => {
    await output(["clients", "create", "sender"]);
    const made = await output(["campaigns", "create", "spring", "--client", "sender", "--json"]);
    const campaign = { client_id: "sender", campaign_key: "spring", state: "active", languages: [] };
    expect(JSON.parse(made)).toMatchObject(campaign);
    const [own, ofNobody, refused] = await Promise.all([
      list("--client", "sender"),
      complaint(["campaigns", "list", "--client", "nobody"]),
      complaint(["campaigns", "create", "spring", "--client", "sender"]),
    ]);
    expect(own).toMatchObject([campaign]);
    expect(ofNobody).toContain("no client nobody");
    expect(refused).toContain("exists already");
    expect(await output(["campaigns", "delete", "spring", "--client", "sender"])).toContain("spring");
    const [deleted, again] = await Promise.all([
      list(),
      complaint(["campaigns", "delete", "spring", "--client", "sender"]),
    ]);
    expect(deleted).toMatchObject([{ ...campaign, state: "deleted" }]);
    expect(again).toContain("deleted already");
    await output(["campaigns", "create", "spring", "--client", "sender", "--languages", "en,pt-BR"]);
    const [back, table] = await Promise.all([list(), output(["campaigns", "list"])]);
    expect(back).toMatchObject([{ ...campaign, languages: ["en", "pt-BR"] }]);
    expect(table).toMatch(/^sender +spring +active +en,pt-BR +/m);
  });

  it("say what is wrong", async () => {
    const [noClient, noCampaign, ...refused] = await Promise.all([
      complaint(["campaigns", "create", "a", "--client", "nobody"]),
      complaint(["campaigns", "delete", "a", "--client", "sender"]),
      ops(["campaigns", "create", "a b", "--client", "sender"]),
      ops(["campaigns", "create", "a", "--client", "sender", "--languages", "en,"]),
    ]);
    expect(noClient).toContain("no client nobody");
    expect(noCampaign).toContain("no campaign a");
    for (const result of refused) expect(result).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("trouble", () => {
  it.each([
    [["frobnicate"], "unknown command"],
    [["keys"], "Usage"],
    [["retention"], "--yes"],
  ])("usage: %j ends with 2", async (words, text) => {
    const { code, stdout, stderr } = await ops(words, { CLICKHOUSE_URL: "", KAFKA_BROKERS: "" });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(text);
  });

  it("needs the variables of the command alone", async () => {
    const results = await Promise.all([
      ops(["clients", "list"], { KAFKA_BROKERS: "" }),
      ops(["dead-letters", "list"], { CLICKHOUSE_URL: "" }),
    ]);
    expect(results).toMatchObject([{ code: 0 }, { code: 0 }]);
  });

  it("tells wrong credentials and missing rights apart, without the password", async () => {
    const wrong = new URL(stack.clickhouse.url("migrator"));
    wrong.password = "not-the-password";
    const [refused, forbidden] = await Promise.all([
      complaint(["clients", "list"], { CLICKHOUSE_URL: wrong.href }),
      complaint(["clients", "create", "hooli"], { CLICKHOUSE_URL: stack.clickhouse.url("reader") }),
    ]);
    expect(refused).toContain("refuses the user migrator");
    expect(refused).not.toContain("not-the-password");
    expect(forbidden).toMatch(
      /user reader may not do this \(.*the grant (SELECT|INSERT).*\): CLICKHOUSE_URL must name the user/,
    );
  });

  it("says that Kafka does not answer, in time", async () => {
    const started = performance.now();
    const line = await complaint(["topics", "create", "--timeout", "1"], { KAFKA_BROKERS: CLOSED_PORT }, 3);
    expect(line).toContain(`Kafka does not answer at ${CLOSED_PORT}`);
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it("says that ClickHouse does not answer while it is stopped", async () => {
    await stack.clickhouse.stop();
    try {
      const lines = await Promise.all([complaint(["migrate"], {}, 3), complaint(["clients", "list"], {}, 3)]);
      for (const line of lines)
        expect(line).toMatch(/ClickHouse does not answer at 127\.0\.0\.1:\d+ \(ECONNREFUSED\)/);
    } finally {
      await stack.clickhouse.start();
    }
    expect(await output(["clients", "list"])).toContain("acme");
  });
});

describe("audit", () => {
  it("says who changed what, before and after, and nothing of what was only read", async () => {
    const since = new Date().toISOString();
    await output(["clients", "create", "audited"]);
    await output(["clients", "list"]);
    await complaint(["clients", "create", "audited"], { OPERATOR: "joe" });
    const listed = async (...more: string[]) =>
      JSON.parse(await output(["audit", "--since", since, "--json", ...more])) as Record<string, unknown>[];
    expect(await listed()).toMatchObject([
      {
        actor: "joe",
        command: "clients create",
        state: "failed",
        result: expect.stringContaining("exists already"),
      },
      {
        actor: "jane@example.com",
        command: "clients create",
        arguments: { arguments: ["audited"] },
        source: expect.stringMatching(/.@./),
        state: "done",
        ended_at: expect.stringMatching(/Z$/),
        result: "",
      },
    ]);
    expect(await listed("--actor", "joe")).toHaveLength(1);
    expect(await output(["audit", "--since", since])).toContain("jane@example.com");
    const url = stack.clickhouse.url("migrator");
    const states = await runSql(
      url,
      `SELECT state FROM audit WHERE arguments LIKE '%audited%' ORDER BY at, state FORMAT TSV`,
    );
    expect(states.trim().split("\n")).toEqual(["begun", "done", "begun", "failed"]);
  });

  it("has the topics that were made, and those that were not", async () => {
    const states = await runSql(
      stack.clickhouse.url("migrator"),
      `SELECT DISTINCT state FROM audit WHERE command = 'topics create' ORDER BY state FORMAT TSV`,
    );
    expect(states.trim().split("\n")).toEqual(["begun", "done", "failed"]);
  });

  it("is asked for who changes something, before it is changed", async () => {
    const line = await complaint(["clients", "delete", "audited"], { OPERATOR: "" }, 2);
    expect(line).toContain("OPERATOR: is required: who runs this command");
    expect(await output(["clients", "list"])).toMatch(/^audited +active/m);
  });

  it("is changed by no user of a service", async () => {
    for (const user of ["writer", "reader", "lookup", "intake", "jobs", "analyst"] as const) {
      const url = stack.clickhouse.url(user);
      await expect(runSql(url, "ALTER TABLE audit DELETE WHERE 1"), user).rejects.toThrow(
        /ACCESS_DENIED|READONLY/,
      );
      await expect(runSql(url, "TRUNCATE TABLE audit"), user).rejects.toThrow(/ACCESS_DENIED|READONLY/);
    }
  });
});

it("no connection is left by a command that has ended", async () => {
  const sockets = () => runs.flatMap((run) => run.sockets);
  expect(sockets().length).toBeGreaterThan(100);
  // An abandoned attempt to connect may still be going on.
  await until("all are closed", 20_000, () => sockets().every(({ destroyed }) => destroyed));
});

describe("the command itself", () => {
  const installed = join(projectFolder, "node_modules", ".bin", "export-ops");

  it("is executable and installed under its name", async () => {
    expect((await stat(main)).mode & 0o111).toBe(0o111);
    expect((await readFile(main, "utf8")).split("\n")[0]).toBe("#!/usr/bin/env node");
    const { stdout } = await promisify(execFile)(installed, ["--help"]);
    for (const name of [
      "migrate",
      "topics",
      "keys",
      "doctor",
      "status",
      "jobs",
      "backfill",
      "erase",
      "dead-letters",
    ])
      expect(stdout).toContain(name);
  });

  it("writes the schemas that are committed", async () => {
    const out = join(stack.dir, "schemas");
    await output(["schemas", "--out", out]);
    const types = ["conversation.exported", "message.exported", "end_user.exported", "sms.trigger_requested"];
    const names = [...types.map((type) => `${type}.schema.json`), "asyncapi.json"];
    for (const name of names) {
      const committed = await readFile(join(projectFolder, "docs", "schemas", name), "utf8");
      expect(await readFile(join(out, name), "utf8")).toBe(committed);
    }
    expect(Object.keys(JSON.parse(await output(["schemas"])) as object)).toEqual(names);
  });
});
