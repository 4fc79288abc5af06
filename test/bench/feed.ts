import type { Readable } from "node:stream";
import {
  createBatch,
  createReader,
  createSession,
  createWriter,
  type PagePosition,
  type Reader,
} from "@conversation-export/warehouse";
import type { System } from "../system/system.ts";
import { conversation, SECOND } from "../warehouse/records.ts";
import { type FeedData, fillFeed } from "./feed-data.ts";
import { type Cost, createMeter } from "./server-cost.ts";
import { median, type Result } from "./report.ts";
import { runSql } from "./warehouse-http.ts";
import { mergesIdle, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const PAGE = 10_000;
const SMALL_PAGE = 100;
const ROUNDS = 9;
const FEW = 10;
const BATCH = 5_000;
const FAR_END = WINDOW_START + 2 * WINDOW_MICROS;
/** Positions at which pages are read: beginning, middle, end. */
const PLACES = [0, 0.5, 0.95];
const MIDDLE = 1;

type Meter = Awaited<ReturnType<typeof createMeter>>;

const drain = async (records: Readable): Promise<void> => {
  for await (const _ of records);
};

/** Medians of the costs; each work runs once a round, the first round only warms up. */
const inTurn = async (meter: Meter, works: readonly (() => Promise<unknown>)[]): Promise<number[]> => {
  const times: number[][] = works.map(() => []);
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [index, work] of works.entries()) {
      const { ms } = await meter(work);
      if (round > 0) times[index]?.push(ms);
    }
  }
  return times.map(median);
};

/** Positions in the feed behind which the pages of `PLACES` start, and near its end. */
const positionsOf = async (url: string, client: string): Promise<{ places: number[]; last: number }> => {
  const sql = `SELECT arrayMap(at -> toUnixTimestamp64Micro(at), quantilesExact(${PLACES.join()})(stored_at)),
    toUnixTimestamp64Micro(max(stored_at)) FROM changes WHERE client_id = '${client}' FORMAT JSONCompactEachRow`;
  const [places, last] = JSON.parse((await runSql(url, sql)).text) as [string[], string];
  return { places: places.map(Number), last: Number(last) };
};

const behind = (date: number): PagePosition => ({ date: date - 1, id: "" });

/** What a page of changes costs beside a page by creation. */
const comparePages = async (deps: {
  readonly url: string;
  readonly reader: Reader;
  readonly meter: Meter;
  readonly data: FeedData;
  readonly log: (line: string) => void;
}): Promise<{
  readonly feed: number[];
  readonly ratio: number;
  readonly created: number;
  readonly small: number;
  readonly smallCreated: number;
}> => {
  const { url, reader, meter, data, log } = deps;
  const { client, kind } = data;
  const { places, last } = await positionsOf(url, client);
  const byCreation = kind === "message" ? reader.messagesByCreation : reader.conversationsByCreation;
  /** Records of the latest page behind each position. */
  const found = new Map<number, number>();
  const changes = (after: PagePosition, pageSize: number) => async (): Promise<void> => {
    const page = await reader.changes({ clientId: client, kind, after, settled: FAR_END, pageSize });
    if (pageSize === PAGE) found.set(after.date, page.rows);
    await drain(page.records);
  };
  const created = (place: number, pageSize: number) => async (): Promise<void> => {
    const since = WINDOW_START + Math.floor(WINDOW_MICROS * place);
    await drain(
      (await byCreation({ clientId: client, since, to: FAR_END, pageSize, wholeTies: false })).records,
    );
  };
  const times = await inTurn(meter, [
    ...places.map((at) => changes(behind(at), PAGE)),
    ...PLACES.map((place) => created(place, PAGE)),
    changes(behind(places[MIDDLE] ?? 0), SMALL_PAGE),
    created(0.5, SMALL_PAGE),
    changes({ date: last, id: "~" }, PAGE),
    changes(behind(last - FEW), PAGE),
  ]);
  const feed = times.slice(0, PLACES.length);
  const pages = times.slice(PLACES.length, 2 * PLACES.length);
  const [small = 0, smallCreated = 0, nothing = 0, few = 0] = times.slice(2 * PLACES.length);
  const inMs = (each: readonly number[]): string => each.map((ms) => ms.toFixed(0)).join(", ");
  log(
    `${client}: changes ${inMs(feed)} ms (${places.map((at) => found.get(at - 1)).join(", ")} records), by creation ${inMs(pages)} ms`,
  );
  log(
    `${client}: 100 changes ${inMs([small])} ms, by creation ${inMs([smallCreated])} ms; a poll without entries ${inMs([nothing])} ms, with ${FEW + 1} ${inMs([few])} ms`,
  );
  return { feed, created: median(pages), ratio: median(feed) / median(pages), small, smallCreated };
};

const result = (name: string, ours: number, peer: number, most: number): Result => {
  const ratio = ours / peer;
  return { name, ours, peer, ratio, goal: `<=${most}`, reached: ratio <= most };
};

/** Logs what each statement of a page in the middle reads. */
const logReads = async (deps: {
  readonly url: string;
  readonly readerUrl: string;
  readonly meter: Meter;
  readonly client: string;
  readonly log: (line: string) => void;
}): Promise<void> => {
  const { url, readerUrl, meter, client, log } = deps;
  const session = createSession({ url: readerUrl, application: "bench" });
  const reads: (readonly [string, Cost])[] = [];
  const statements: Parameters<typeof session.stream>[] = [];
  const stream: typeof session.stream = (...statement) => {
    statements.push(statement);
    return session.stream(...statement);
  };
  const reader = createReader({ session: { ...session, stream }, lookups: session });
  const { places } = await positionsOf(url, client);
  // The first page learns how many entries the records have.
  for (const _ of ["learn", "read"]) {
    statements.length = 0;
    const after = behind(places[MIDDLE] ?? 0);
    const query = {
      clientId: client,
      kind: "conversation",
      after,
      settled: FAR_END,
      pageSize: PAGE,
    } as const;
    await drain((await reader.changes(query)).records);
  }
  for (const statement of statements)
    reads.push([statement[0], await meter(async () => drain(await session.stream(...statement)))]);
  await session.close();
  const text = reads.map(([name, { rows, bytes }]) => `${name} ${rows} rows, ${(bytes / 1e6).toFixed(1)} MB`);
  log(`${client} reads: ${text.join("; ")}`);
};

/** The INSERTs of one batch of conversations, with and without the entries of `changes`. */
const compareInserts = async (system: System, meter: Meter): Promise<{ all: number; without: number }> => {
  const session = createSession({ url: system.stack.clickhouse.url("writer"), application: "bench" });
  const writer = createWriter({ session });
  const batch = createBatch("conversation.exported");
  for (let number = 0; number < BATCH; number += 1) {
    const created = WINDOW_START + number * SECOND;
    const at = { client: "inserts", time: created + SECOND, offset: number };
    const summary = `${number.toString(36)} asked where the order is `.repeat(30);
    batch.add(conversation(at, `c${number}`, created, created, { inquiry_summary: summary }));
  }
  batch.fillUpload(WINDOW_START + BATCH * SECOND);
  const inserts = batch.inserts(0, BATCH);
  const insert = (tables: (table: string) => boolean) => async (): Promise<void> => {
    for (const one of inserts) if (tables(one.table)) await writer.insert(one);
  };
  const [all = 0, without = 0] = await inTurn(meter, [
    insert(() => true),
    insert((table) => table !== "changes"),
  ]);
  await session.close();
  return { all, without };
};

const datasets = (stored: number): readonly FeedData[] => {
  const usual = { kind: "conversation", stored, exports: 1, ids: "ascending", lateOneIn: null } as const;
  return [
    { ...usual, client: "once" },
    { ...usual, client: "late", lateOneIn: 50 },
    { ...usual, client: "random", ids: "random" },
    { ...usual, client: "thrice", exports: 3 },
    { ...usual, client: "random_thrice", ids: "random", exports: 3 },
    { ...usual, client: "messages", kind: "message" },
    { ...usual, client: "quarter", stored: stored / 4 },
    { ...usual, client: "sixteenth", stored: stored / 16 },
  ];
};

/** Pages of changes, by the processor time of ClickHouse. `stored`: exports of each client. */
export const benchFeed = async (
  system: System,
  stored: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const url = system.stack.clickhouse.url("migrator");
  const readerUrl = system.stack.clickhouse.url("reader");
  for (const data of datasets(stored)) {
    await fillFeed(url, data);
    log(`${data.client}: ${data.stored} exports are in the warehouse`);
  }
  await mergesIdle(url);
  await runSql(url, "SYSTEM STOP MERGES");
  const size = await runSql(
    url,
    "SELECT sum(data_compressed_bytes) / sum(rows) FROM system.parts WHERE active AND table = 'changes' AND database = currentDatabase()",
  );
  log(`changes: ${Number(size.text).toFixed(1)} bytes an entry`);

  const meter = await createMeter(url);
  const session = createSession({ url: readerUrl, application: "bench" });
  const reader = createReader({ session, lookups: session });
  const results: Result[] = [];
  for (const data of datasets(stored).filter((one) => one.stored === stored)) {
    const { feed, created, small, smallCreated } = await comparePages({ url, reader, meter, data, log });
    if (data.client === "once" || data.client === "late")
      results.push(result(`feed_page_flatness_${data.client}`, Math.max(...feed), Math.min(...feed), 1.3));
    results.push(result(`feed_vs_created_${data.client}`, median(feed), created, 1.5));
    results.push(result(`feed_vs_created_100_${data.client}`, small, smallCreated, 1.5));
  }
  await session.close();
  for (const client of ["sixteenth", "quarter", "once"])
    await logReads({ url, readerUrl, meter, client, log });
  const { all, without } = await compareInserts(system, meter);
  log(
    `INSERTs of a batch of ${BATCH} conversations: ${all.toFixed(1)} ms, without changes ${without.toFixed(1)} ms`,
  );
  return results;
};
