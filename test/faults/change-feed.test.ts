import { setTimeout as sleep } from "node:timers/promises";
import { backfillJob, compactJob, type JobClient, retentionJob } from "@conversation-export/queue";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { compareExports } from "../compare/compare-exports.ts";
import { type ChangeFollower, type ChangeList, createChangeFollower } from "../compare/change-follower.ts";
import { fetchPatiently } from "../compare/patient-fetch.ts";
import { createPublishedChanges, type PublishedChanges } from "../compare/published-changes.ts";
import { createStableLedger, type StableLedger } from "../compare/stable-ledger.ts";
import { createUpdateFollower, type UpdateFollower } from "../compare/update-follower.ts";
import { walk } from "../compare/walk.ts";
import { type SlowNetwork, startSlowNetwork } from "./slow-network.ts";
import { checksum, fold, normaliseExported } from "../reference/index.ts";
import { createSample } from "../sample/index.ts";
import { type Change, createRestless, personOf } from "../sample/restless.ts";
import { createRandom, type Random } from "../sample/values/random.ts";
import { closeAllWindows } from "../system/compaction-load.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { type KeptProcess, keepRunning } from "../system/kept-process.ts";
import { type OwnRedis, startRedis } from "../system/redis-servers.ts";
import { readMetric } from "../system/metrics-text.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { startJobClient, workOff } from "../system/operator-jobs.ts";
import { requestErasure } from "../system/request-erasure.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { GROUP, startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";
import { shuffled } from "../warehouse/random.ts";

const PLANT = fileURLToPath(new URL("./plant.ts", import.meta.url));
/** Longer than readers lag. */
const LONG_MS = 3_000;
/** Longer than readers wait for a slow batch; at full size up to five times as long. */
const pauseMs = (): number => bySize(LONG_MS, 1_000 + random.int(5 * 30_000));
const [RESTLESS, SPOILT, EXPIRING] = ["acme", "globex", "expiring"] as const;
const CLIENTS = [RESTLESS, SPOILT, EXPIRING];
const LISTS: readonly ChangeList[] = ["conversations", "messages", "end_users"];
const RECORDS = bySize(150, 1_500);
const SAMPLE = bySize(120, 3_000);
const LOAD_MS = bySize(12_000, 600_000);
const DEADLINE_MS = bySize(120_000, 600_000);
const READER_PAUSE_MS = bySize(4_000, 1_000);

const INGEST = {
  BATCH_MAX_RECORDS: "200",
  BATCH_MAX_AGE_MS: "300",
  KAFKA_SESSION_TIMEOUT_MS: "3000",
  WATERMARK_INTERVAL_MS: "500",
};
const JOBS = { JOB_LOCK_MS: "2000", BACKFILL_PART_EVENTS: bySize("2000", "10000"), ...NO_SCHEDULES };
const BACKFILL = backfillJob.data.parse({ source: { kind: "landing" } });

let system: System;
let seed: string;
let random: Random;
let delivery: Delivery;
let client: JobClient;
let network: SlowNetwork;
let ledger: StableLedger;
let oldRecipe: UpdateFollower;
let jobs: KeptProcess;
/** A second Redis, as when REDIS_URL changed while an old process lives on. */
let secondRedis: OwnRedis;
let ingests: readonly KeptProcess[];
let changes: Readonly<Record<"restless" | "old" | "young", () => Change>>;
const keys = new Map<string, string>();
const followers: { readonly client: string; readonly follower: ChangeFollower }[] = [];
let published: PublishedChanges;
const persons: string[] = [];

const follow = (): void => {
  for (const [one, key] of keys)
    for (const list of LISTS)
      followers.push({ client: one, follower: createChangeFollower({ apiUrl: system.apiUrl, key, list }) });
};

const slowly = async (): Promise<KeptProcess> => {
  const url = network.through(system.stack.clickhouse.url("writer"));
  return keepRunning(
    async () => (await system.another("ingest", { ...INGEST, CLICKHOUSE_URL: url })).process,
  );
};

beforeAll(async () => {
  seed = seedOfRun("changes");
  random = createRandom(seed, "faults");
  system = await startSystem("test-changes");
  for (const one of CLIENTS) keys.set(one, await system.key(one, ["export", "end_users", "compliance"]));
  await system.ops("clients", "set", EXPIRING, "--retention-days", "365");
  client = await startJobClient(system.stack.redis.url);
  delivery = createDelivery(system);
  published = createPublishedChanges(delivery);
  const common = { seed, records: RECORDS, now: Date.now };
  changes = {
    restless: createRestless({ ...common, client: RESTLESS }),
    old: createRestless({ ...common, client: EXPIRING, since: Date.UTC(2025, 2, 1) }),
    young: createRestless({ ...common, client: EXPIRING }),
  };
  const { host, port } = system.stack.clickhouse;
  const delays = createRandom(seed, "network");
  network = await startSlowNetwork({
    target: { host, port },
    // Some bytes take longer than readers wait.
    delayOf: () => delays.int(delays.chance(0.005) ? 2 * LONG_MS : delays.chance(0.2) ? 300 : 5),
  });
  ledger = createStableLedger(system.stack.clickhouse.url("migrator"));
  oldRecipe = createUpdateFollower({ apiUrl: system.apiUrl, key: keys.get(RESTLESS) ?? "" });
  await insertOldEndUsers();
  await system.service("export-api");
  jobs = await keepRunning(() => system.service("jobs", JOBS));
  secondRedis = await startRedis();
  await system.another("jobs", { ...JOBS, REDIS_URL: secondRedis.url });
  follow();
  await until("changes are stable", DEADLINE_MS, async () => (await ledger.stable()) > 0);
});
afterAll(async () => {
  await Promise.all([...(ingests ?? []), jobs].map((one) => one?.stop()));
  await client?.stop();
  await network?.close();
  await system?.stop();
  await secondRedis?.stop();
});

/** Extends landing back to before the sample; adds end users old enough to expire. */
const insertOldEndUsers = async (): Promise<void> => {
  await system.sql(`INSERT INTO landing (topic, partition, offset, type, client_id, record_id, payload, uploaded_at, expires_on)
    SELECT 'conversations', 9, 0, 'none', 'none', 'none', '', '2026-09-01 00:00:00', today() + 30`);
  await system.sql(`INSERT INTO changes (client_id, kind, stored_at, id, date_created)
    SELECT '${EXPIRING}', 'end_user', '2026-09-02 00:00:00', concat('old', toString(number)), 0 FROM numbers(20)`);
  await system.sql(`INSERT INTO end_users (client_id, end_user_id, version, uploaded_at, date_created, date_updated, record)
    SELECT '${EXPIRING}', concat('old', toString(number)), toUInt128(number + 1) * pow(2, 64)::UInt128,
      '2026-09-02 00:00:00', '2025-03-01 00:00:00',
      toDateTime64('2025-03-01 00:00:00', 6, 'UTC') + toIntervalDay(number % 2 * 500),
      concat('{"end_user_id":"old', toString(number), '"}') FROM numbers(20)`);
};

const sample = () =>
  shuffled(random, [
    ...createSample({
      seed,
      conversations: SAMPLE,
      messagesPerConversation: 3,
      clients: [SPOILT],
      endUsers: bySize(30, 300),
      nonstandardShare: 0.15,
      poisonShare: 0,
    }),
  ]);

const expire = (): Promise<void> =>
  delivery.send(
    Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? changes.old() : changes.young()).event),
  );

const untilPassed = async (groupId: string): Promise<void> => {
  const ends = new Map(
    delivery.delivered.map(({ topic, partition, offset }) => [`${topic}/${partition}`, offset + 1]),
  );
  await until(`group ${groupId} gets on`, DEADLINE_MS, async () => {
    const committed = await system.admin.fetchCommitted(groupId, Object.values(TOPICS)).catch(() => []);
    const reached = new Map(
      committed.map(({ topic, partition, offset }) => [`${topic}/${partition}`, offset ?? 0]),
    );
    return [...ends].every(([place, end]) => (reached.get(place) ?? 0) >= end);
  });
};

const erase = async (): Promise<void> => {
  const name = `gone-${persons.length}`;
  persons.push(name);
  await delivery.send(personOf(RESTLESS, name, new Date().toISOString()));
  await untilPassed(GROUP);
  const subject = { email: `${name}@example.com` };
  const request = await requestErasure(system.apiUrl, keys.get(RESTLESS) ?? "", subject, fetchPatiently);
  await delivery.send(personOf(RESTLESS, name, new Date().toISOString()));
  await request.completed(DEADLINE_MS);
};

const pause = async (paused: KeptProcess): Promise<void> => {
  await whileStopped(paused.current(), async () => {
    const over = (Date.now() + pauseMs()) * 1_000;
    await until("readers have passed it", DEADLINE_MS, async () => (await ledger.stable()) > over);
  });
  await paused.ready();
};

const jobFaults: Readonly<Record<string, () => Promise<unknown>>> = {
  erase,
  retention: async () => {
    await expire();
    await untilPassed(GROUP);
    await workOff(client, retentionJob, { clientId: null, dryRun: false });
  },
  "backfill from landing": () => workOff(client, backfillJob, BACKFILL),
  "backfill from the bus": () => workOff(client, backfillJob, { ...BACKFILL, source: { kind: "kafka" } }),
  compaction: async () => {
    await closeAllWindows(system.stack.clickhouse.url("jobs"));
    await workOff(client, compactJob, { range: null, force: true, dryRun: false });
  },
  merges: async () => {
    for (const table of ["changes", "conversations", "messages", "end_users"])
      await system.sql(`OPTIMIZE TABLE ${table} FINAL`);
  },
  "a pause of jobs": () => pause(jobs),
  "a crash of jobs": async () => {
    const running = workOff(client, backfillJob, BACKFILL);
    await sleep(random.int(3_000));
    await jobs.crash();
    await running;
  },
};

const ingestFaults: Readonly<Record<string, () => Promise<unknown>>> = {
  crash: () => random.pick(ingests).crash(),
  "another crash": () => random.pick(ingests).crash(),
  pause: () => pause(random.pick(ingests)),
  replay: async () => {
    const groupId = `replay-${Date.now()}`;
    const { process: replaying } = await system.another("ingest", { ...INGEST, KAFKA_GROUP_ID: groupId });
    await untilPassed(groupId);
    await replaying.kill("SIGTERM");
  },
};

const inRandomOrder = async (lane: string, faults: typeof jobFaults): Promise<void> => {
  const waiting = Object.keys(faults);
  while (waiting.length > 0) {
    const [name = ""] = waiting.splice(random.int(waiting.length), 1);
    const started = performance.now();
    await faults[name]?.();
    console.log(`${lane}: ${name} took ${Math.round(performance.now() - started)} ms`);
  }
};

const sizeOf = (): number | "lines" =>
  random.chance(0.2) ? "lines" : 1 + random.int(random.pick([20, 2_000]));
const isKept = (): boolean => !random.chance(0.05);

type Load = { stop(): Promise<void> };

const startLoad = (): Load => {
  const end = new AbortController();
  const again = async (work: () => Promise<unknown>, pauseMs: () => number): Promise<void> => {
    while (!end.signal.aborted) {
      await work();
      await sleep(pauseMs(), undefined, { signal: end.signal }).catch(() => undefined);
    }
  };
  const read = async (one: (typeof followers)[number]): Promise<void> => {
    const { watermark, stableUpTo } = await one.follower.toTheEnd(sizeOf, isKept);
    if (one.client !== RESTLESS) return;
    const { list, held } = one.follower;
    const missing = published.missingAt(list, watermark, held);
    expect(missing, `watermark ${watermark}, stableUpTo ${stableUpTo}`).toEqual([]);
  };
  const working = [
    again(
      () => published.publish(Array.from({ length: 1 + random.int(40) }, changes.restless)),
      () => random.int(bySize(1_600, 400)),
    ),
    again(expire, () => random.int(2_000)),
    ...followers.map((one) =>
      again(
        () => read(one),
        () => random.int(READER_PAUSE_MS),
      ),
    ),
    again(oldRecipe.turn, () => random.int(READER_PAUSE_MS)),
    again(ledger.note, () => 200),
  ];
  const all = Promise.all(working);
  // The first failure ends the test when the load stops.
  all.catch(() => end.abort());
  return {
    stop: async () => {
      end.abort();
      await all;
    },
  };
};

const settle = async (): Promise<void> => {
  await system.caughtUp(DEADLINE_MS);
  await Promise.all(ingests.map((one) => one.ready()));
  await until("ingest holds nothing", DEADLINE_MS, async () => {
    const held = await Promise.all(
      ingests.map((one) => readMetric(one.current().metricsUrl, "conversation_export_ingest_buffered_bytes")),
    );
    return held.every((bytes) => bytes === 0);
  });
  await until("jobs are idle", DEADLINE_MS, async () =>
    Object.values(await client.counts()).every(
      ({ waiting, delayed, active, parts }) => waiting + delayed + active + parts === 0,
    ),
  );
};

const readToTheEnd = async (follower: ChangeFollower): Promise<void> => {
  const stored = Number(
    await system.sql(
      "SELECT greatest(toUnixTimestamp64Micro(now64(6)), toUnixTimestamp64Micro(max(stored_at))) FROM changes",
    ),
  );
  await until(`${follower.list} are stable`, DEADLINE_MS, async () => {
    return (await follower.toTheEnd(sizeOf)).stableUpTo > stored;
  });
};

const listOf = async (key: string, list: ChangeList): Promise<Map<string, string>> => {
  const window = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z&page_size=5000";
  const records =
    list === "end_users"
      ? await walk(`${system.apiUrl}/v2/end-users/?limit=1000`, key)
      : await walk(`${system.apiUrl}/v2/export/${list}?${window}`, key);
  return new Map(records.map((text) => [normaliseExported(text).id, text]));
};

const differences = (
  expected: ReadonlyMap<string, string>,
  found: ReadonlyMap<string, string>,
): readonly string[] => [
  ...[...expected].flatMap(([id, text]) => {
    const other = found.get(id);
    if (other === text) return [];
    return [other === undefined ? `missing ${id}: ${text}` : `different ${id}: ${text} but ${other}`];
  }),
  ...[...found].flatMap(([id, text]) => (expected.has(id) ? [] : [`not in the list ${id}: ${text}`])),
];

const compare = async (): Promise<void> => {
  for (const one of followers) {
    const { follower } = one;
    await readToTheEnd(follower);
    const list = await listOf(keys.get(one.client) ?? "", follower.list);
    expect(differences(list, follower.held), `${follower.list} of ${one.client}`).toEqual([]);
  }
  await ledger.note();
  expect(await ledger.late(), "rows behind a stable instant").toEqual([]);
};

it(
  "gives every change to readers who keep nothing but their cursor, whatever comes late, twice or is erased",
  async () => {
    const planted = await system.service("ingest", { ...INGEST, NODE_OPTIONS: `--import=${PLANT}` });
    await delivery.send(sample());
    await system.caughtUp(DEADLINE_MS);
    for (const { follower } of followers) await follower.toTheEnd(sizeOf);
    await planted.kill("SIGTERM");
    const ingest = () => keepRunning(async () => (await system.another("ingest", INGEST)).process);
    ingests = await Promise.all([ingest(), ingest(), slowly()]);

    const started = performance.now();
    let rounds = 0;
    do {
      rounds += 1;
      const load = startLoad();
      const faults = await Promise.allSettled([
        inRandomOrder("ingest", ingestFaults),
        inRandomOrder("jobs", jobFaults),
      ]);
      await load.stop();
      for (const fault of faults) if (fault.status === "rejected") throw fault.reason;
      await settle();
      await compare();
    } while (performance.now() - started < LOAD_MS);

    for (const one of followers) {
      const key = keys.get(one.client) ?? "";
      const again = createChangeFollower({ apiUrl: system.apiUrl, key, list: one.follower.list });
      await again.toTheEnd(sizeOf);
      expect(differences(one.follower.held, again.held), `${again.list} of ${one.client} afresh`).toEqual([]);
    }

    await oldRecipe.turn();
    const lists = await listOf(keys.get(RESTLESS) ?? "", "conversations");
    const lost = [...lists].filter(([id, text]) => oldRecipe.held.get(id) !== text).length;
    const entries = followers.reduce((sum, { follower }) => sum + follower.entries(), 0);
    console.log(
      `${rounds} rounds, ${delivery.delivered.length} events, ${entries} entries read; ` +
        `of ${lists.size} conversations the feed lost 0, updated_since lost ${lost}`,
    );
    expect(lost).toBeGreaterThan(0);

    const remembered = delivery.delivered.filter(({ event }) => {
      const { key } = event as unknown as { key: string };
      return !key.startsWith(`${RESTLESS}:gone-`) && !key.startsWith(`${EXPIRING}:`);
    });
    const expected = fold(remembered);
    const compared = new Map([...keys].filter(([one]) => one !== EXPIRING));
    expect(await compareExports(system.apiUrl, expected, compared)).toEqual([]);
    for (const one of followers) {
      if (one.follower.list !== "end_users" || one.client === EXPIRING) continue;
      const held = [...one.follower.held.values()].map(normaliseExported);
      const wanted = [...(expected.endUsers.get(one.client)?.values() ?? [])];
      expect(checksum(held), `end users of ${one.client}`).toBe(checksum(wanted));
    }
    expect(published.compared()).toBeGreaterThan(0);
  },
  bySize(600_000, 45 * 60_000),
);
