import { createRequestStore, createSession } from "@conversation-export/warehouse";
import { handMade } from "../sample/hand-made.ts";
import { createDelivery } from "../system/deliver.ts";
import type { System } from "../system/system.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { until } from "../system/until.ts";
import { type BusEvent, createSample } from "../sample/index.ts";
import { noteDates } from "../system/record-dates.ts";

/** One client per job, which separates what each job did. */
export const CLIENT = {
  backfill: "wrong-rows",
  replay: "refused",
  reconcile: "incomplete",
  erasure: "persons",
  retention: "expiring",
  compact: "moved",
  windows: "long-ago",
} as const;

const CREATED = "2026-10-04T00:00:00Z";
const RECORD_TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"];

type Sizes = {
  readonly conversations: number;
  readonly deadLetters: number;
  readonly persons: number;
  readonly expired: number;
  readonly moved: number;
  readonly windows: number;
};

const eventsOf = (client: string) => {
  let exported = 0;
  return (kind: BusEvent["kind"], id: string, data: Record<string, unknown>, time?: string): BusEvent => {
    exported += 1;
    const at = time ?? new Date(Date.UTC(2026, 9, 5) + exported * 1_000).toISOString();
    const own =
      kind === "end_user" ? { end_user_id: id, created_at: CREATED } : { _id: id, date_created: CREATED };
    return handMade({ kind, client, id, time: at, data: { ...own, ...data } });
  };
};

const personsOf = (count: number): BusEvent[] => {
  const event = eventsOf(CLIENT.erasure);
  return Array.from({ length: count }, (_, index) => `p${index}`).flatMap((name) => [
    event("end_user", `${name}-user`, { profile: { email: `${name}@example.com`, first_name: name } }),
    event("conversation", `${name}-1`, {
      chatter_id: `${name}-chatter`,
      end_user_id: `${name}-user`,
      handoffs: [{ id: `${name}-h`, handoff_id: null, date_created: CREATED, reasoning: `${name} asked` }],
    }),
    event("conversation", `${name}-1`, { chatter_id: `${name}-chatter`, inquiry_summary: name }),
    event("message", `${name}-1-1`, { conversation_id: `${name}-1`, chatter_id: `${name}-chatter` }),
    event("message", `${name}-1-2`, { conversation_id: `${name}-1` }),
  ]);
};

const movedOf = (count: number): BusEvent[] => {
  const event = eventsOf(CLIENT.compact);
  return Array.from({ length: count }, (_, index) => `m${index}`).flatMap((id) =>
    ["2026-10-03T10:00:00Z", "2026-09-30T10:00:00Z"].map((date, at) =>
      event("conversation", id, {
        date_created: date,
        handoffs: [0, 1].map((handoff) => ({
          id: `${id}-${handoff * (at + 1)}`,
          handoff_id: null,
          date_created: date,
        })),
      }),
    ),
  );
};

const insertRows = async (url: string, sizes: Sizes): Promise<void> => {
  const { retention, windows } = CLIENT;
  const from = (rows: number): string => `FROM numbers(${rows})`;
  const version = "(toUInt128(1000000 + number) * pow(2, 64)::UInt128)";
  const expired: readonly [string, string, string][] = [
    [
      "conversations",
      "client_id, date_created, conversation_id, version, uploaded_at, date_updated, head, tail",
      `'${retention}', toDateTime64('2025-03-01 00:00:00', 6, 'UTC') + toIntervalDay(number % 2 * 500), concat('c', toString(number)), ${version}, '2026-09-02 00:00:00', '2025-03-02 00:00:00', '{', '}'`,
    ],
    [
      "conversation_updates",
      "client_id, date_updated, conversation_id, version, date_created, uploaded_at",
      `'${retention}', '2025-03-02 00:00:00', concat('c', toString(number)), ${version}, toDateTime64('2025-03-01 00:00:00', 6, 'UTC') + toIntervalDay(number % 2 * 500), '2026-09-02 00:00:00'`,
    ],
    [
      "messages",
      "client_id, date_created, message_id, version, uploaded_at, conversation_id, record",
      `'${retention}', '2025-03-01 00:00:00', concat('m', toString(number)), ${version}, '2026-09-02 00:00:00', 'c', '{}'`,
    ],
    [
      "end_users",
      "client_id, end_user_id, version, uploaded_at, date_created, date_updated, record",
      `'${retention}', concat('u', toString(number)), ${version}, '2026-09-02 00:00:00', '2025-03-01 00:00:00', toDateTime64('2025-03-01 00:00:00', 6, 'UTC') + toIntervalDay(number % 2 * 500), '{}'`,
    ],
    [
      "landing",
      "topic, partition, offset, type, client_id, record_id, date_created, payload, uploaded_at, expires_on",
      `'end-users', 8, number, 'end_user.exported', '${retention}', concat('u', toString(number)), '2025-03-01 00:00:00', '{}', '2026-09-02 00:00:00', today() + 30`,
    ],
    // A row that stays in the part makes ClickHouse rewrite it instead of dropping it.
    [
      "messages",
      "client_id, date_created, message_id, version, uploaded_at, conversation_id, record",
      `if(number = 0, '${windows}', '${retention}'), '2025-03-01 00:00:00', concat('mixed', toString(number)), ${version}, '2026-09-02 00:00:00', 'c', '{}'`,
    ],
  ];
  for (const [table, columns, values] of expired) {
    await runSql(url, `INSERT INTO ${table} (${columns}) SELECT ${values} ${from(sizes.expired)}`);
  }
  await runSql(
    url,
    `INSERT INTO messages (client_id, date_created, message_id, version, uploaded_at, conversation_id, record)
      SELECT '${windows}', '2026-07-01 00:00:00', concat('w', toString(number)), ${version},
        toDateTime64('2026-08-01 00:30:00', 6, 'UTC') + toIntervalHour(number % ${sizes.windows}), 'c', '{}'
      ${from(sizes.windows * 3)}`,
  );
  for (const table of ["conversations", "messages"] as const)
    await runSql(url, noteDates(table, { addedAt: "toDateTime('2026-09-02 00:00:00')" }));
  await runSql(
    url,
    `INSERT INTO clients (client_id, version, link_bounds, deleted, created_at, retention_days)
      VALUES ('${retention}', 1, '', false, now(), 365)`,
  );
};

/**
 * Ingest runs with the bugs of `plant` and rejects records dated a few seconds ahead; resolves when they can be
 * replayed.
 */
export const fillWithWork = async (
  system: System,
  options: { readonly seed: string; readonly sizes: Sizes; readonly plant: string },
): Promise<void> => {
  const { seed, sizes, plant } = options;
  const url = system.stack.clickhouse.url("migrator");
  // Extends landing back to before the sample.
  await runSql(
    url,
    `INSERT INTO landing (topic, partition, offset, type, client_id, record_id, payload, uploaded_at, expires_on)
      SELECT 'conversations', 9, 0, 'none', 'none', 'none', '', '2026-09-01 00:00:00', today() + 30`,
  );
  for (const table of RECORD_TABLES)
    await runSql(
      url,
      `ALTER TABLE ${table} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1,
        max_bytes_to_merge_at_min_space_in_pool = 1`,
    );
  await insertRows(url, sizes);
  const session = createSession({ url, application: "test" });
  const requests = createRequestStore({ session, idSecret: seed, now: Date.now });
  for (let person = 0; person < sizes.persons; person += 1)
    await requests.open(CLIENT.erasure, { email: `p${person}@example.com`, identifiers: [] });
  await session.close();

  const ingest = await system.service("ingest", {
    NODE_OPTIONS: `--import=${plant}`,
    MAX_TIME_AHEAD_SECONDS: "0",
  });
  const delivery = createDelivery(system);
  const sample = createSample({
    seed,
    conversations: sizes.conversations,
    clients: [CLIENT.backfill],
    endUsers: 10,
    nonstandardShare: 0.15,
    lateShare: 0.1,
    poisonShare: 0,
  });
  await delivery.send(sample);
  const complete = eventsOf(CLIENT.reconcile);
  const refused = eventsOf(CLIENT.replay);
  const soon = Date.now() + 3_000;
  await delivery.send([
    ...personsOf(sizes.persons + 2),
    ...movedOf(sizes.moved),
    ...Array.from({ length: sizes.deadLetters }, (_, index) =>
      complete("message", `r${index}`, { conversation_id: "c" }),
    ),
    ...["conversation", "end_user"].map((kind) => complete(kind as BusEvent["kind"], "r", {})),
    ...Array.from({ length: sizes.deadLetters }, (_, index) =>
      refused("message", `f${index}`, { conversation_id: "c" }, new Date(soon).toISOString()),
    ),
  ]);
  await system.caughtUp(120_000);
  await ingest.kill("SIGTERM");
  await runSql(
    url,
    `ALTER TABLE messages DELETE WHERE client_id = '${CLIENT.reconcile}' AND message_id IN ('r1', 'r2')
    SETTINGS mutations_sync = 2`,
  );
  await until("the time of what was refused has come", 10_000, () => Date.now() > soon);
};

export const cloneDatabase = async (system: System, name: string): Promise<void> => {
  const url = system.stack.clickhouse.url("migrator");
  await runSql(url, `CREATE DATABASE ${name}`);
  const tables = (await runSql(url, "SHOW TABLES FORMAT TSVRaw")).trim().split("\n");
  for (const table of tables) await runSql(url, `CREATE TABLE ${name}.${table} CLONE AS ${table}`);
};
