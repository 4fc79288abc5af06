import { afterAll, beforeAll, expect, it } from "vitest";
import { fold } from "../reference/index.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { createDelivery } from "../system/deliver.ts";
import { blocksOf, runCommands } from "../documents/guide-commands.ts";
import { handMade } from "../sample/hand-made.ts";
import { findInActiveParts } from "../compare/part-bytes.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { type BusEvent, createSample } from "../sample/index.ts";

const CLIENTS = ["acme", "globex"];
const CREATED = "2026-10-04T00:00:00Z";
const ENV = {
  WATERMARK_INTERVAL_MS: "200",
  BATCH_MAX_AGE_MS: "200",
  // Only processes that the guide starts run.
  ...NO_SCHEDULES,
};

const [prelude = "", backUpRecords = "", backUpAccess = "", tryRestore = ""] = blocksOf(
  "backup-and-restore.md",
  "Back up",
);
const [, restore = "", eraseAgain = "", , prove = ""] = blocksOf("backup-and-restore.md", "Restore");

let system: System;
let env: Record<string, string>;
const keys = new Map<string, string>();

beforeAll(async () => {
  system = await startSystem("restore");
  env = {
    ...system.environment("jobs"),
    OPERATOR: "test",
    CLICKHOUSE_URL: system.stack.clickhouse.url("migrator"),
  };
  keys.set("acme", await system.key("acme"));
});
afterAll(() => system?.stop());

const sql = (statement: string): Promise<string> => runSql(env["CLICKHOUSE_URL"] ?? "", statement);
const guide = (...blocks: readonly string[]): Promise<string> => runCommands(env, prelude, ...blocks);

const sampleOf = (name: string): Iterable<BusEvent> =>
  createSample({
    seed: seedOfRun(`restore-${name}`),
    conversations: bySize(60, 5_000),
    clients: CLIENTS,
    endUsers: 20,
  });

const deletionOf = (client: string): string =>
  `ALTER TABLE messages DELETE WHERE client_id = '${client}' SETTINGS mutations_sync = 2`;

const person = (name: string, again = ""): BusEvent[] => {
  const at = { client: "acme", time: `2026-10-05T00:00:0${again.length}Z` };
  const of = { date_created: CREATED };
  return [
    handMade({
      ...at,
      kind: "end_user",
      id: `${name}-user`,
      data: { end_user_id: `${name}-user`, created_at: CREATED, profile: { email: `${name}@example.com` } },
    }),
    handMade({
      ...at,
      kind: "conversation",
      id: `${name}-1`,
      data: { _id: `${name}-1`, ...of, end_user_id: `${name}-user`, inquiry_summary: `${name} asks` },
    }),
    handMade({
      ...at,
      kind: "message",
      id: `${name}-1-1`,
      data: { _id: `${name}-1-1`, ...of, conversation_id: `${name}-1`, chatter_id: `${name}-chatter` },
    }),
  ];
};

it("comes back from its backups and the bus, without who was erased meanwhile", async () => {
  const delivery = createDelivery(system);
  const erased = person("gone");
  // Exported again, since the platform does not know of erasures.
  const erasedAgain = person("gone", "again");
  const [ingest, jobs] = await Promise.all([system.service("ingest", ENV), system.service("jobs", ENV)]);
  await delivery.send([...sampleOf("before"), ...erased, ...person("kept")]);
  await system.caughtUp(60_000);
  // Mutated parts keep their mutation number in a backup.
  await sql("INSERT INTO messages (client_id, message_id, version) VALUES ('nobody', 'one', 1)");
  for (const client of ["x", "y", "z"]) await sql(deletionOf(client));
  const records = (await guide(backUpRecords, 'echo "$RECORDS"')).trim().split("\n").at(-1) ?? "";
  expect(records).toMatch(/^records-\d{8}T\d{6}Z$/);
  await guide(`RECORDS=${records}`, tryRestore);

  await runCommands(env, "npx export-ops erase --client acme --email gone@example.com --yes");
  keys.set("globex", await system.key("globex"));
  const small = (await guide(backUpAccess, 'echo "$SMALL"')).trim().split("\n").at(-1) ?? "";
  await delivery.send([...sampleOf("behind"), ...erasedAgain]);
  await system.caughtUp(60_000);
  await expect(guide("npx export-ops offsets move --to 1970-01-01 --yes")).rejects.toThrow(
    /stop all processes/,
  );
  await Promise.all([ingest, jobs].map((process) => process.kill("SIGTERM")));

  await guide(`RECORDS=${records} SMALL=${small}`, restore);
  expect(await sql("SELECT count() FROM watermarks")).toBe("0\n");
  await sql(deletionOf("nobody"));
  expect(await sql("SELECT count() FROM messages WHERE client_id = 'nobody'")).toBe("0\n");
  const texts = ["gone-user", "gone-chatter", "gone@example.com", "gone asks", "kept-chatter"];
  const back = await findInActiveParts(system.stack.clickhouse.url("migrator"), texts);
  expect(Object.keys(back.found).sort()).toEqual(texts.toSorted());

  const since = records.replace(/^records-(.{4})(..)(.{5})(..)(..)Z$/, "$1-$2-$3:$4:$5Z");
  await system.service("jobs", ENV);
  const report = await guide(`SINCE=${since}`, eraseAgain);
  expect(report).toContain("dry run yes");
  const left = await findInActiveParts(system.stack.clickhouse.url("migrator"), texts);
  // Deletions stay in `changes` for a month.
  expect(Object.keys(left.found).sort()).toEqual(["gone-user", "kept-chatter"]);

  await system.service("ingest", ENV);
  await system.caughtUp(60_000);
  await until("each list has a watermark", 20_000, async () => {
    return (
      (await sql(
        "SELECT uniqExact(list) FROM watermarks WHERE list IN ('conversations', 'messages', 'end_users')",
      )) === "3\n"
    );
  });
  await guide(
    `SINCE=${since}`,
    prove
      .split("\n")
      .filter((line) => !line.includes("doctor"))
      .join("\n"),
  );
  await system.service("export-api");
  const about = new Set<unknown>([...erased, ...erasedAgain].map(({ value }) => value));
  const expected = fold(delivery.delivered.filter(({ event }) => !about.has(event.value)));
  expect(await compareExports(system.apiUrl, expected, keys)).toEqual([]);
  const after = await findInActiveParts(system.stack.clickhouse.url("migrator"), texts);
  expect(Object.keys(after.found).sort()).toEqual(["gone-user", "kept-chatter"]);
});
