import { compactJob } from "@conversation-export/queue";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createComparison } from "../compare/comparison.ts";
import {
  everyList,
  expectedOfList,
  type ExportList,
  type ListWindow,
  readList,
} from "../compare/every-list.ts";
import { createListMonitor } from "../compare/list-monitor.ts";
import { fold, type Folded } from "../reference/index.ts";
import { DAYS, FIRST_DAY, movingExport, STAMP, THREADS } from "../sample/moving-exports.ts";
import type { BusEvent } from "../sample/index.ts";
import { createRandom } from "../sample/values/random.ts";
import { DAY } from "../sample/values/instants.ts";
import { closeAllWindows } from "../system/compaction-load.ts";
import { createDelivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { startJobClient, workOff } from "../system/operator-jobs.ts";
import { ROWS_WITHOUT_DATE } from "../system/record-dates.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { VIEWS } from "../warehouse/view-rows.ts";

const CLIENT = "acme";
const REPLAY = "replay";
/** STEADY records keep their last export; MOVING ones change. */
const STEADY = 80;
const MOVING = 160;
const EXPORTS_EACH = 3;
/** Far fewer than the rows of one step of lines, so that a step is one page. */
const EXPORTS = bySize(1_600, 20_000);
const EXPORTS_AT_ONCE = 20;
const POLLS = bySize(2, 20);
const READERS = 3;

const INGEST_ENV = { BATCH_MAX_RECORDS: "200", BATCH_MAX_AGE_MS: "100", KAFKA_SESSION_TIMEOUT_MS: "3000" };

const WHOLE: ListWindow = { since: 0n, to: BigInt(FIRST_DAY + 300 * DAY) };
const MIDDLE: ListWindow = { since: BigInt(FIRST_DAY + DAY), to: BigInt(FIRST_DAY + (DAYS - 1) * DAY) };
const SMALL = 100;
const LARGE = 10_000;

type Walk = {
  readonly name: string;
  readonly list: ExportList;
  readonly style: "same" | "advancing";
  readonly window: ListWindow;
  readonly pageSize: number;
};

const walks: readonly Walk[] = everyList(THREADS[0]).flatMap((list) => {
  const walk = (style: Walk["style"], window: ListWindow, pageSize: number): Walk => ({
    name: `${list.name}, ${style}, ${window === WHOLE ? "all" : "some"}, pages of ${pageSize}`,
    list,
    style,
    window,
    pageSize,
  });
  const atOnce = [walk("same", WHOLE, LARGE), walk("same", MIDDLE, LARGE)];
  return list.form === "lines"
    ? atOnce
    : [
        ...atOnce,
        walk("same", WHOLE, SMALL),
        walk("advancing", WHOLE, SMALL),
        walk("advancing", WHOLE, LARGE),
      ];
});

let system: System;
let key: string;
const hosts = { same: "", advancing: "" };

beforeAll(async () => {
  system = await startSystem("test-record-identity");
  key = await system.key(CLIENT);
  const [advancing] = await Promise.all([
    system.anotherApi({ LINK_BOUNDS: "advancing" }),
    system.service("export-api"),
  ]);
  hosts.same = new URL(system.apiUrl).origin;
  hosts.advancing = new URL(advancing.apiUrl).origin;
});
afterAll(() => system?.stop());

const read = async ({ list, style, window, pageSize }: Walk): Promise<string[][]> => {
  const pages: string[][] = [];
  const how = { host: hosts[style], key, window, pageSize, takesBound: style === "advancing" };
  for await (const page of readList(list, how)) pages.push(page);
  return pages;
};

/** A new group has no coordinator yet. */
const replayed = (): Promise<number> => system.committed(REPLAY).catch(() => 0);

const countMovedRecords = (): Promise<string> =>
  system.sql(`SELECT count() FROM (SELECT conversation_id FROM conversations GROUP BY client_id, conversation_id
    HAVING uniqExact(date_created) > 1)`);

const differences = async (expected: Folded): Promise<unknown[]> => {
  const found: unknown[] = [];
  for (const walk of walks) {
    const comparison = createComparison(expectedOfList(expected, CLIENT, walk.list, walk.window));
    for (const page of await read(walk)) comparison.take(page);
    const { problems, examples, read: shown } = comparison.finish();
    if (problems > 0 || shown.records === 0) found.push({ walk: walk.name, problems, examples });
  }
  return found;
};

const expectNoRepetitionInViews = async (): Promise<void> => {
  for (const [view, id] of [
    ["conversations", "conversation_id"],
    ["messages", "message_id"],
  ]) {
    const rows = `SELECT count() > 0, count() - uniqExact(${id}) FROM ${VIEWS}.${view} FORMAT TSV`;
    const found = await runSql(system.stack.clickhouse.url("analyst"), rows);
    expect(found.trim(), `rows of ${view}, and how many too many`).toBe("1\t0");
  }
};

const compact = async (): Promise<void> => {
  await closeAllWindows(system.stack.clickhouse.url("jobs"));
  const jobs = await system.service("jobs", NO_SCHEDULES);
  const queue = await startJobClient(system.stack.redis.url);
  try {
    await workOff(queue, compactJob, { range: null, force: false, dryRun: false });
  } finally {
    await queue.stop();
    await jobs.kill("SIGTERM");
  }
};

it("shows each record once in every list while its dates change, ingest dies and the topics are replayed", async () => {
  const seed = seedOfRun("record identity");
  const random = createRandom(seed);
  const delivery = createDelivery(system);
  const exportsOf = (number: number): BusEvent[] => [
    movingExport(random, "conversation", CLIENT, number),
    movingExport(random, "message", CLIENT, number),
  ];

  const [first] = await Promise.all([
    system.another("ingest", INGEST_ENV),
    system.another("ingest", INGEST_ENV),
  ]);
  const numbers = Array.from({ length: STEADY + MOVING }, (_, number) => number);
  for (let round = 0; round < EXPORTS_EACH; round += 1) await delivery.send(numbers.flatMap(exportsOf));
  await system.caughtUp(120_000);
  const settled = fold(delivery.delivered);
  const isSteady = (id: string): boolean => Number(id.slice(1)) < STEADY;

  const problems: string[] = [];
  const polls = new Map(walks.map(({ name }) => [name, 0]));
  let isDone = false;
  const watched = walks.map((walk) => {
    const { list, window, pageSize } = walk;
    const isWhole = pageSize === LARGE && window === WHOLE && list.conversation === null;
    const code = list.kind === "conversations" ? "c" : "m";
    const watch = createListMonitor({
      list,
      stamp: STAMP[list.kind],
      steady: expectedOfList(settled, CLIENT, list, window).filter(({ id }) => isSteady(id)),
      everyone: isWhole ? new Set(numbers.map((number) => `${code}${number}`)) : null,
    });
    return { walk, watch };
  });
  const poll = async (reader: number): Promise<void> => {
    while (!isDone) {
      for (const { walk, watch } of watched.filter((_, index) => index % READERS === reader)) {
        if (isDone) return;
        const pages = await read(walk);
        problems.push(...watch.take(pages).map((problem) => `${walk.name}: ${problem}`));
        polls.set(walk.name, (polls.get(walk.name) ?? 0) + 1);
      }
    }
  };
  const leastPolls = (): number => Math.min(...polls.values());
  const walked = (): number => [...polls.values()].reduce((sum, count) => sum + count, 0);

  const send = async (): Promise<void> => {
    for (let sent = 0; !isDone && sent < EXPORTS; sent += 2 * EXPORTS_AT_ONCE) {
      await delivery.send(
        Array.from({ length: EXPORTS_AT_ONCE }, () => exportsOf(STEADY + random.int(MOVING))).flat(),
      );
      const before = walked();
      await until("another list is read", 60_000, () => isDone || walked() > before);
    }
  };

  const disturb = async (): Promise<void> => {
    await until("lists are read", 60_000, () => [...polls.values()].some((count) => count > 0));
    const sent = delivery.delivered.length;
    const replay = await system.another("ingest", { ...INGEST_ENV, KAFKA_GROUP_ID: REPLAY });
    await until("the replay gets on", 60_000, async () => (await replayed()) > 0);
    await first.process.kill("SIGKILL");
    expect(await system.sql(ROWS_WITHOUT_DATE)).toBe("");
    await system.another("ingest", INGEST_ENV);
    await until("everything is replayed", 120_000, async () => (await replayed()) >= sent);
    await replay.process.kill("SIGTERM");
  };

  const polling = Promise.all(Array.from({ length: READERS }, (_, reader) => poll(reader)));
  const stopAtFailure = (error: unknown): never => {
    isDone = true;
    throw error;
  };
  await Promise.all([
    Promise.all([send(), disturb()])
      .then(() => until("each list is read", 600_000, () => isDone || leastPolls() >= POLLS))
      .then(() => system.caughtUp(120_000))
      .then(() => void (isDone = true))
      .catch(stopAtFailure),
    polling.catch(stopAtFailure),
  ]);
  console.log(`exports: ${delivery.delivered.length}, walks of each list: at least ${leastPolls()}`);
  expect(problems.slice(0, 20)).toEqual([]);

  expect(await system.sql(ROWS_WITHOUT_DATE)).toBe("");
  const expected = fold(delivery.delivered);
  expect(expected.rejected).toEqual([]);
  expect(Number(await countMovedRecords())).toBeGreaterThan(MOVING);
  expect(await differences(expected)).toEqual([]);
  await expectNoRepetitionInViews();

  await compact();
  expect(await differences(expected)).toEqual([]);
  await expectNoRepetitionInViews();
});
