import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChangeFollower, type ChangeList, createChangeFollower } from "../compare/change-follower.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { walk } from "../compare/walk.ts";
import { type Replication, startReplication } from "../faults/replication.ts";
import { fold } from "../reference/index.ts";
import { handMade } from "../sample/hand-made.ts";
import { type Change, createRestless, exportedAt } from "../sample/restless.ts";
import { createRandom, type Random } from "../sample/values/random.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { ops } from "../system/ops.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { clusterVariables } from "../system/shards.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

const CLIENT = "acme";
const GROUP = "conversation-export-ingest";
const LISTS: readonly ChangeList[] = ["conversations", "messages", "end_users"];
const LIST_OF = { conversation: "conversations", message: "messages", end_user: "end_users" } as const;
const WALKED = ["conversations", "messages"] as const;
const RECORDS = bySize(1_000, 5_000);
const LOAD_MS = bySize(30_000, 300_000);
const DEADLINE_MS = 60_000;
const WINDOW = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z";
const INGEST = {
  BATCH_MAX_RECORDS: "200",
  BATCH_MAX_AGE_MS: "100",
  WATERMARK_INTERVAL_MS: "300",
};

/** `from`, `by`: the bus was given the event, and had it, ms. */
type Published = { readonly change: Change; readonly from: number; by: number };

let system: System;
let random: Random;
let replication: Replication;
let delivery: Delivery;
let change: () => Change;
let key: string;
let ingest: ServiceProcess;
const published: Published[] = [];
/** Records that a reader under load had to hold, over all its looks. */
let compared = 0;

beforeAll(async () => {
  const seed = seedOfRun("replicas");
  random = createRandom(seed, "replicas");
  system = await startSystem("test-replicas", { shards: 2, areReplicas: true });
  const { stack } = system;
  await runSql(stack.clickhouse.url("migrator"), "SYSTEM STOP MERGES");
  key = await system.key(CLIENT, ["export", "end_users"]);
  const [first, second] = stack.clickhouseShards;
  if (first === undefined || second === undefined) throw new Error("there are no two servers");
  replication = await startReplication({
    servers: [first.url("migrator"), second.url("migrator")],
    delayOf: () => random.int(random.chance(0.2) ? 1_500 : 200),
  });
  await replication.complete();
  delivery = createDelivery(system);
  change = createRestless({ seed, client: CLIENT, records: RECORDS, now: Date.now });
  const jobs = { ...NO_SCHEDULES, CLICKHOUSE_URL: replication.through(stack.clickhouse.url("jobs")) };
  ingest = await system.service("ingest", {
    ...INGEST,
    CLICKHOUSE_URL: replication.through(stack.clickhouse.url("writer")),
  });
  await Promise.all([system.service("export-api"), system.service("jobs", jobs)]);
  await until("changes are settled", DEADLINE_MS, async () => {
    const answer = await fetch(`${system.apiUrl}/v2/export/changes/messages`, {
      headers: { authorization: `Bearer ${key}` },
    });
    await answer.arrayBuffer();
    return answer.status === 200;
  });
});
afterAll(async () => {
  await Promise.allSettled([replication?.close()]);
  await system?.stop();
});

const publish = async (): Promise<void> => {
  const changes = Array.from({ length: 1 + random.int(40) }, change);
  const sent = changes.map((one): Published => ({ change: one, from: Date.now(), by: Infinity }));
  published.push(...sent);
  await delivery.send(changes.map(({ event }) => event));
  const by = Date.now();
  for (const one of sent) one.by = by;
};

/** What a reader who holds `held` lacks of what had reached the bus before the watermark, ms. */
const missingAt = (list: ChangeList, watermark: number, held: ReadonlyMap<string, string>): string[] => {
  const wanted = new Map<string, number>();
  for (const { change: one, by } of published)
    if (by < watermark && LIST_OF[one.kind] === list)
      wanted.set(one.id, Math.max(one.time, wanted.get(one.id) ?? 0));
  compared += wanted.size;
  return [...wanted].flatMap(([id, time]) => {
    const text = held.get(id);
    if (text === undefined) return [`${id} is missing`];
    return exportedAt(text) >= time ? [] : [`${id} of ${time} is older: ${text}`];
  });
};

/** Ids whose date of creation may change while somebody reads from `since` on, ms. */
const restlessSince = (since: number): ReadonlySet<string> =>
  new Set(published.flatMap(({ change: one, by }) => (by < since ? [] : [one.id])));

const watermarkOf = async (list: (typeof WALKED)[number]): Promise<number> => {
  const answer = await fetch(`${system.apiUrl}/v2/export/${list}?${WINDOW}&page_size=100`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  return Date.parse(answer.headers.get("x-export-watermark") ?? "1970-01-01T00:00:00Z");
};

/** Reads a list from its beginning to its end, and compares it with what the watermark before it promises. */
const readByCreation = async (list: (typeof WALKED)[number]): Promise<number> => {
  const watermark = await watermarkOf(list);
  const size = 100 + random.int(random.pick([100, 2_000]));
  const records = await walk(`${system.apiUrl}/v2/export/${list}?${WINDOW}&page_size=${size}`, key);
  const ids = records.map((text) => (JSON.parse(text) as { _id: string })._id);
  const held = new Map(ids.map((id, at) => [id, records[at] ?? ""]));
  const moving = restlessSince(watermark);
  const missing = missingAt(list, watermark, held).filter((text) => !moving.has(text.split(" ")[0] ?? ""));
  expect(missing, `${list} by creation, pages of ${size}`).toEqual([]);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at && !moving.has(id));
  expect(twice, `${list} by creation, pages of ${size}`).toEqual([]);
  return records.length;
};

describe("replicas that are behind each other, every INSERT acknowledged by all", () => {
  it("hide nothing behind a watermark, whichever of them a statement reads", async () => {
    const followers = LISTS.map((list) => createChangeFollower({ apiUrl: system.apiUrl, key, list }));
    let isDone = false;
    let walks = 0;
    const again = async (work: () => Promise<unknown>, pauseMs: () => number): Promise<void> => {
      while (!isDone) {
        await work();
        await sleep(pauseMs());
      }
    };
    const follow = async (follower: ChangeFollower): Promise<void> => {
      const { watermark } = await follower.toTheEnd(() =>
        random.chance(0.2) ? "lines" : 1 + random.int(random.pick([20, 2_000])),
      );
      expect(missingAt(follower.list, watermark, follower.held), `changes of ${follower.list}`).toEqual([]);
    };
    const working = [
      again(publish, () => random.int(400)),
      ...followers.map((one) =>
        again(
          () => follow(one),
          () => random.int(500),
        ),
      ),
      ...WALKED.map((list) =>
        again(
          async () => {
            if ((await readByCreation(list)) > 0) walks += 1;
          },
          () => random.int(500),
        ),
      ),
    ];
    await Promise.race([sleep(LOAD_MS), Promise.all(working)]).finally(() => (isDone = true));
    await Promise.all(working);
    const underLoad = compared;
    await system.caughtUp(GROUP, DEADLINE_MS);
    const now = Date.now();
    for (const follower of followers) {
      await until(`${follower.list} are settled`, DEADLINE_MS, async () => {
        const { watermark } = await follower.toTheEnd(() => 5_000);
        return watermark > now;
      });
      expect(missingAt(follower.list, now, follower.held)).toEqual([]);
    }
    expect(await compareExports(system.apiUrl, fold(delivery.delivered), new Map([[CLIENT, key]]))).toEqual(
      [],
    );
    console.log(
      `${published.length} events, ${walks} walks by creation, ${underLoad} records compared under load`,
    );
    expect(walks).toBeGreaterThan(0);
    expect(underLoad).toBeGreaterThan(0);
  });

  it("hide records behind a watermark when one server acknowledges alone, and doctor warns of it", async () => {
    await ingest.kill("SIGTERM");
    await replication.pause();
    await system.another("ingest", INGEST);
    await delivery.send([
      handMade({
        kind: "conversation",
        client: CLIENT,
        id: "alone",
        time: new Date().toISOString(),
        data: { _id: "alone", date_created: "2026-10-20T12:00:00Z" },
      }),
    ]);
    const by = Date.now();
    await until("the watermark passes", DEADLINE_MS, async () => (await watermarkOf("conversations")) > by);
    const url = `${system.apiUrl}/v2/export/conversations?${WINDOW.replace("1970-01-01", "2026-10-20")}`;
    const reads = async (): Promise<boolean[]> => {
      const found: boolean[] = [];
      for (let read = 0; read < 30; read += 1)
        found.push((await walk(url, key)).some((text) => text.includes('"alone"')));
      return found;
    };
    // ClickHouse avoids a server that failed once, for a minute or more.
    await until("a read meets the server behind", DEADLINE_MS, async () => (await reads()).includes(false));
    replication.resume();
    await replication.complete();
    expect(await reads()).not.toContain(false);

    const { stack } = system;
    const variables = {
      ...clusterVariables(stack),
      ...system.environment("jobs"),
      CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
      CLICKHOUSE_WRITER_URL: stack.clickhouse.url("writer"),
    };
    const { CLICKHOUSE_SHARD_URLS: _, ...keeper } = variables as Readonly<Record<string, string>>;
    const doctor = (given: Readonly<Record<string, string>>): Promise<string> =>
      ops(given, "doctor").catch((error: { stdout?: string }) => error.stdout ?? "");
    // As if there were a Keeper: the servers say no more than that they are replicas.
    expect(await doctor(keeper)).toMatch(/warning +ClickHouse +replicas of writer +insert_quorum is 0/);
    expect(await doctor(variables)).toMatch(
      /problem +ClickHouse +replicas +shards have 2 replicas, and CLICKHOUSE_SHARD_URLS/,
    );
    expect(await doctor({ ...keeper, CLUSTER: "nowhere" })).toMatch(
      /problem +ClickHouse +replicas +this server has no cluster of the name in CLUSTER/,
    );
  });
});
