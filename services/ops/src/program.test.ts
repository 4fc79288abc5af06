import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "@conversation-export/runtime";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { createTestDeps } from "./commands/command-deps.fixture.ts";
import { EXIT } from "./explain/exit-code.ts";
import { createProgram } from "./program.ts";
import { runCommand } from "./run-command.ts";

/** Nothing listens there. */
const CLOSED = "127.0.0.1:9";
const AWAY = {
  OPERATOR: "jane@example.com",
  CLICKHOUSE_URL: `http://migrator:hunter2@${CLOSED}/export`,
  KAFKA_BROKERS: CLOSED,
  REDIS_URL: `redis://:hunter2@${CLOSED}`,
  CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
  SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
} as const;
const REQUEST = "0123456789abcdef0123456789abcdef-0";

type Ending = { readonly code: number; readonly out: string; readonly err: string };

const run = async (words: readonly string[], env: Environment = {}): Promise<Ending> => {
  const { out, err, deps } = createTestDeps(env);
  const code = await runCommand(words, deps);
  return { code, out: out.join("\n"), err: err.join("\n") };
};

describe("wrong usage", () => {
  it.each([
    ["frobnicate", "unknown command"],
    ["help frobnicate", "unknown command 'frobnicate'"],
    ["help jobs lst", "unknown command 'lst'"],
    ["migrate --cluster a'b", "--cluster"],
    ["migrate --cluter a", "unknown option"],
    ["migrate again", "too many arguments"],
    ["topics", "Usage"],
    ["topics create --partitions 0", "whole number from 1"],
    ["topics create --timeout 1e3", "whole number"],
    ["schemas --out", "argument missing"],
    ["clients create", "missing required argument"],
    ["clients create a/b", "1 to 128"],
    [`clients create ${"x".repeat(129)}`, "1 to 128"],
    ["clients create a b", "too many arguments"],
    ["clients create a --link-bounds other", "same, advancing"],
    ["clients create a --rate-limit conversations", "NAME=WINDOWS"],
    ["clients create a --rate-limit exports=1/1s", "conversations, messages, end_users"],
    ["clients create a --rate-limit messages=1/0s", "10/1s,100/1m"],
    ["clients create a --retention-days 0", "whole number from 1"],
    ["clients set a --rate-limit messages=off --rate-limit messages=1/1s", "more than once"],
    ["clients set a", "--link-bounds or --rate-limit or --retention-days"],
    ["clients set a --link-bounds none", "same, advancing, default"],
    ["clients list --jsn", "unknown option"],
    ["clients delete", "missing required argument"],
    ["keys", "Usage"],
    ["keys create", "--client"],
    ["keys create --client acme --scopes export,,", "'' is no scope"],
    ["keys create --client acme --scopes exports", "export, end_users, compliance, campaigns"],
    ["keys create --client acme --expires 2020-01-01", "to come"],
    ["keys create --client acme --expires soon", "a day (2026-11-01)"],
    ["keys create --client acme --secret A_b", "the name of a Secret"],
    ["keys list --client", "argument missing"],
    ["keys revoke", "missing required argument"],
    ["campaigns create a", "--client"],
    ["campaigns create a/b --client c", "1 to 128"],
    ["campaigns create a --client c --languages en,", "language tags"],
    ["campaigns list more", "too many arguments"],
    ["campaigns delete a", "--client"],
    ["doctor now", "too many arguments"],
    ["status --group x", "unknown option"],
    ["status --every 0", "whole number from 1"],
    ["status --partitions --every 2", "cannot be used with"],
    ["status --partitions --watch", "cannot be used with"],
    ["status now", "too many arguments"],
    ["windows --since yesterday", "a day (2026-11-01)"],
    ["windows --since 1d --until 2d", "--since must be earlier"],
    ["windows --state shut", "open, closed, compacted, backfilled"],
    ["jobs", "Usage"],
    ["jobs list --queue mail", "'mail' is no queue"],
    ["jobs list --state done", "'done' is no state"],
    ["jobs list --limit 0", "whole number"],
    ["jobs show", "missing required argument"],
    ["jobs show a/b", "the id of a job"],
    ["jobs follow", "missing required argument"],
    ["jobs cancel backfill-1", "add --yes"],
    ["jobs retry", "missing required argument"],
    ["jobs remove backfill-1", "add --yes"],
    ["backfill --dry-run", "either --client or --all-clients"],
    ["backfill --client a --all-clients --dry-run", "either --client or --all-clients"],
    ["backfill --client a", "add --yes"],
    ["backfill --client a --source tape", "landing, kafka, files"],
    ["backfill --client a --source files --dry-run", "needs --location"],
    ["backfill --client a --location /tmp --dry-run", "--source files"],
    ["backfill --client a --by event --dry-run", "--by needs"],
    ["backfill --client a --since 2026-11-31 --dry-run", "It must be a day"],
    ["backfill --client a --since 1d --until 2d --dry-run", "--since must be earlier"],
    ["backfill --client a --offsets 0=1-2 --dry-run", "--topic and --offsets belong together"],
    ["backfill --client a --topic t --offsets 0=2-2 --dry-run", "PARTITION=FROM-TO"],
    ["backfill --client a --topic t --offsets 0=1-2 --offsets 0=2-3 --dry-run", "more than once"],
    ["backfill --client a --topic t --offsets 0=1-2 --since 1d --dry-run", "either of offsets or of time"],
    ["backfill --client a --source files --location /x --since 1d --by upload --dry-run", "--by event"],
    ["backfill --client a --rate 0 --dry-run", "whole number"],
    ["compact --since 1d --until 2d", "--since must be earlier"],
    ["compact --sinc 1d", "unknown option"],
    ["reconcile --client a/b", "1 to 128"],
    ["reconcile --since 1d --until 2d", "--since must be earlier"],
    ["retention", "add --yes"],
    ["retention --client a/b --dry-run", "1 to 128"],
    ["erase", "--client"],
    ["erase --client a", "say who is to be erased"],
    ["erase --client a --email x@example.com", "add --yes"],
    ["erase --client a --end-user-id u --end-user-id v", "add --yes"],
    ["erase --client a --end-user-id", "argument missing"],
    [`erase ${REQUEST} --client a --end-user-id u`, "give one of"],
    [`erase ${REQUEST} --client a --email x@example.com`, "give one of"],
    ["erase 12 --client a", "the id of an erasure request"],
    [`erase approve ${REQUEST}`, "add --yes"],
    ["erase approve --yes", "request-id"],
    [`erase refuse ${REQUEST}`, "add --yes"],
    ["erase preview --client a", "give one of"],
    [`erase preview ${REQUEST} --client a --email x@example.com`, "give one of"],
    ["erase preview --email x@example.com", "--client"],
    ["erase-again --yes", "--since"],
    ["erase-again --since 1d", "add --yes"],
    ["offsets move --yes", "--to"],
    ["offsets move --to yesterday --yes", "a day (2026-11-01)"],
    ["offsets move --to 1d", "add --yes"],
    ["dead-letters", "Usage"],
    ["dead-letters list --reason bad", "'bad' is no reason"],
    ["dead-letters list --limit 0", "whole number"],
    ["dead-letters list --since 1d --until 2d", "--since must be earlier"],
    ["dead-letters show", "missing required argument"],
    ["dead-letters show messages", "TOPIC/PARTITION/OFFSET"],
    ["dead-letters replay", "add --yes"],
    ["dead-letters replay messages/0/1 --since 1d", "give either one dead letter"],
    ["dead-letters replay --topic messages --max-replays 0", "whole number"],
  ])("%s", async (line, text) => {
    const { code, out, err } = await run(line.split(" "));
    expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
    expect(err).toContain(text);
  });
});

/** The first server asked. */
const COMMANDS = [
  ["migrate", "CLICKHOUSE_URL"],
  ["topics create --timeout 1", "CLICKHOUSE_URL"],
  ["clients create a", "CLICKHOUSE_URL"],
  ["clients set a --link-bounds same", "CLICKHOUSE_URL"],
  ["clients list", "CLICKHOUSE_URL"],
  ["clients delete a", "CLICKHOUSE_URL"],
  ["keys create --client a", "CLICKHOUSE_URL"],
  ["keys list", "CLICKHOUSE_URL"],
  ["keys revoke key_1", "CLICKHOUSE_URL"],
  ["campaigns create a --client b", "CLICKHOUSE_URL"],
  ["campaigns list", "CLICKHOUSE_URL"],
  ["campaigns delete a --client b", "CLICKHOUSE_URL"],
  ["windows", "CLICKHOUSE_URL"],
  ["status --partitions", "CLICKHOUSE_URL"],
  ["jobs list", "REDIS_URL"],
  ["jobs show a", "REDIS_URL"],
  ["jobs follow a", "REDIS_URL"],
  ["jobs cancel a --yes", "CLICKHOUSE_URL"],
  ["jobs retry a", "CLICKHOUSE_URL"],
  ["jobs remove a --yes", "CLICKHOUSE_URL"],
  ["backfill --client a --dry-run", "CLICKHOUSE_URL"],
  ["backfill --all-clients --yes --detach", "CLICKHOUSE_URL"],
  ["backfill --all-clients --source kafka --topic messages --offsets 0=1-2 --dry-run", "KAFKA_BROKERS"],
  ["compact", "CLICKHOUSE_URL"],
  ["reconcile", "CLICKHOUSE_URL"],
  ["reconcile --client a", "CLICKHOUSE_URL"],
  ["retention --dry-run", "REDIS_URL"],
  ["windows --recount", "CLICKHOUSE_URL"],
  ["erase --client a --email x@example.com --yes", "CLICKHOUSE_URL"],
  [`erase ${REQUEST} --client a`, "CLICKHOUSE_URL"],
  ["erase preview --client a --email x@example.com", "CLICKHOUSE_URL"],
  ["erase-again --since 1d --yes", "CLICKHOUSE_URL"],
  ["offsets move --to 1d --yes", "CLICKHOUSE_URL"],
  ["dead-letters list", "KAFKA_BROKERS"],
  ["dead-letters show messages/0/1", "KAFKA_BROKERS"],
  ["dead-letters replay --dry-run", "REDIS_URL"],
] as const;

/** Or write files of their own. */
const READING = [
  "audit",
  "campaigns list",
  "clients list",
  "dead-letters list",
  "dead-letters show",
  "doctor",
  "erase preview",
  "grants",
  "help",
  "jobs follow",
  "jobs list",
  "jobs show",
  "keys list",
  "schemas",
  "status",
  "windows",
];

const CHANGING = [
  "migrate",
  "topics create",
  "windows --recount",
  "clients create a",
  "clients set a --link-bounds same",
  "clients delete a",
  "keys create --client a",
  "keys revoke key_1",
  "campaigns create a --client b",
  "campaigns delete a --client b",
  "jobs cancel a --yes",
  "jobs retry a",
  "jobs remove a --yes",
  "backfill --all-clients --yes --detach",
  "compact",
  "reconcile",
  "retention --yes",
  "erase --client a --email x@example.com --yes",
  `erase approve ${REQUEST} --yes`,
  `erase refuse ${REQUEST} --yes`,
  "erase-again --since 1d --yes",
  "offsets move --to 1d --yes",
  "dead-letters replay --yes",
];

describe("servers that are away", () => {
  it("are named with the variable to check, by every command, without passwords", async () => {
    const endings = await Promise.all(
      COMMANDS.map(async ([line, name]) => ({ line, name, ...(await run(line.split(" "), AWAY)) })),
    );
    for (const { line, name, code, out, err } of endings) {
      expect({ line, code, out }).toEqual({ line, code: EXIT.away, out: "" });
      expect(err, line).toMatch(
        /^export-ops: (ClickHouse|Kafka|Redis) does not answer at 127\.0\.0\.1:9\b.*: check /,
      );
      expect(err, line).toContain(name);
      expect(err, line).not.toContain("hunter2");
      expect(err.split("\n"), line).toHaveLength(1);
    }
  });

  it("are all in what the doctor says", async () => {
    const { code, out } = await run(["doctor", "--json"], AWAY);
    expect(code).toBe(EXIT.away);
    const findings = JSON.parse(out) as { area: string; state: string }[];
    const away = findings.filter(({ state }) => state === "away").map(({ area }) => area);
    expect(away.sort()).toEqual(["ClickHouse", "Kafka", "Redis"]);
    expect(out).not.toContain("hunter2");
  });
});

describe("status", () => {
  it("says of each server that it is away, without passwords", async () => {
    const { code, out } = await run(["status"], AWAY);
    expect(code).toBe(EXIT.away);
    expect(out).toContain("11 parts could not be asked");
    expect(out).toMatch(/^\? lag, dead letters, brokers: Kafka does not answer at 127\.0\.0\.1:9 /m);
    expect(out).toMatch(
      /^\? watermarks, windows, erasures, tables, clients: ClickHouse does not answer at /m,
    );
    expect(out).toMatch(/^\? queues, held schedules, processes: Redis does not answer at /m);
    expect(out).toMatch(/^! +RedisAway .* docs\/runbooks\/RedisAway\.md$/m);
    expect(out).not.toContain("hunter2");
  });

  it("names the variables that are missing", async () => {
    const { code, out } = await run(["status", "--json"]);
    expect(code).toBe(EXIT.usage);
    const { failed } = JSON.parse(out) as { failed: { reason: string }[] };
    expect(failed.map(({ reason }) => reason.split(":")[0])).toEqual([
      "KAFKA_BROKERS",
      "CLICKHOUSE_URL",
      "REDIS_URL",
    ]);
  });
});

describe("the audit", () => {
  const namesBelow = (command: Command, words: readonly string[] = []): string[] =>
    command.commands.flatMap((one) => {
      const name = [...words, one.name()];
      const below = namesBelow(one, name);
      const isGroup = below.length > 0 && one.options.length === 0;
      return [...(isGroup ? [] : [name.join(" ")]), ...below];
    });

  it("has a note of every command, but for those that are known to change nothing", async () => {
    const names = namesBelow(await createProgram({ ...createTestDeps().deps, setExitCode: () => undefined }));
    const longestFirst = names.toSorted((a, b) => b.length - a.length);
    const nameOf = (line: string) => longestFirst.find((name) => `${line} `.startsWith(`${name} `)) ?? line;
    const changing = CHANGING.map(nameOf);
    expect([...new Set([...READING, ...changing])].sort()).toEqual(names.sort());
  });

  it.each(CHANGING)("is written to before anything else by %s", async (line) => {
    const { code, out, err } = await run(line.split(" "), AWAY);
    expect({ code, out }).toEqual({ code: EXIT.away, out: "" });
    expect(err).toMatch(/^export-ops: ClickHouse does not answer/);
  });
});

describe("a backfill by offsets", () => {
  it("of Kafka is not begun for a topic that has no events", async () => {
    const line = "backfill --all-clients --source kafka --topic nope --offsets 0=1-2 --dry-run";
    const { code, out, err } = await run(line.split(" "), AWAY);
    expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
    expect(err).toContain("nope is none of the topics of events (conversations, messages, end-users)");
  });
});

describe("variables that are missing", () => {
  it.each(COMMANDS)("%s names %s", async (line, name) => {
    const { code, out, err } = await run(line.split(" "), { ...AWAY, [name]: "" });
    expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
    expect(err).toContain(`${name}: is required`);
  });

  it.each(CHANGING)("%s names OPERATOR before it does anything", async (line) => {
    const { code, out, err } = await run(line.split(" "), { ...AWAY, OPERATOR: "" });
    expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
    expect(err).toContain("OPERATOR: is required: who runs this command");
  });

  it.each([
    ["erase --client a --email x@example.com --yes", "CURSOR_SECRET"],
    ["status --partitions", "KAFKA_BROKERS"],
    ["erase --client a --email x@example.com --yes", "REDIS_URL"],
  ])("%s needs %s too", async (line, name) => {
    expect(await run(line.split(" "), { ...AWAY, [name]: "" })).toMatchObject({
      code: EXIT.usage,
      err: expect.stringContaining(name),
    });
  });

  it("are findings of the doctor", async () => {
    const { code, out } = await run(["doctor"], { CURSOR_SECRET: "short" });
    expect(code).toBe(EXIT.failed);
    for (const name of [
      "CLICKHOUSE_URL",
      "KAFKA_BROKERS",
      "REDIS_URL",
      "CURSOR_SECRET",
      "SUPPRESSION_SECRET",
    ]) {
      expect(out).toContain(name);
    }
  });
});

describe("the help", () => {
  it("has examples for every command and names the exit codes", async () => {
    const { code, out } = await run(["--help"]);
    expect(code).toBe(EXIT.done);
    for (const text of ["0 done", "1 failed", "2 wrong usage", "3 a server", "4 the job", "130", "143"])
      expect(out).toContain(text);
    const names = [...out.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name = ""]) => name);
    expect(names).toContain("dead-letters");
    for (const name of names.filter((one) => one !== "help")) {
      expect((await run([name, "--help"])).out, name).toMatch(/Examples:|(create|move) \[options\]/);
    }
  });

  it("refuses a person that is not described as the export API wants it", async () => {
    const { code, err } = await run(["erase", "--client", "a", "--email", "nobody", "--yes"], AWAY);
    expect({ code, err }).toEqual({
      code: EXIT.usage,
      err: "export-ops: this is no erasure request: email must be an e-mail address",
    });
  });

  it("of a command is shown by its name, as with --help", async () => {
    for (const words of [["backfill"], ["jobs", "list"]]) {
      const shown = await run(["help", ...words]);
      expect(shown).toEqual(await run([...words, "--help"]));
      expect(shown).toMatchObject({
        code: EXIT.done,
        out: expect.stringContaining(`export-ops ${words.join(" ")}`),
      });
    }
  });
});

describe("files", () => {
  it.each([
    ["/none/body.json", "there is no file /none/body.json"],
    ["/tmp", "/tmp cannot be read: "],
    [import.meta.filename, "holds no JSON: "],
  ])("are named when they cannot be used: %s", async (path, text) => {
    const { code, out, err } = await run(["erase", "--client", "a", "--file", path, "--yes"], AWAY);
    expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
    expect(err).toContain(text);
  });

  it.each(["nope", "nope/deeper"])("are not written to a folder that cannot be made: %s", async (folder) => {
    const { code, out, err } = await run(["schemas", "--out", join(import.meta.filename, folder)]);
    expect({ code, out }).toEqual({ code: EXIT.failed, out: "" });
    expect(err).toContain("cannot be written to");
  });

  it.runIf(existsSync("/proc/self"))("are not waited for in a folder that makes none", async () => {
    const { code, err } = await run(["schemas", "--out", "/proc/nope/deeper"]);
    expect(code).toBe(EXIT.failed);
    expect(err).toContain("/proc/nope");
  });
});
