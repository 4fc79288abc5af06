import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ConversationRecord,
  type EndUserRecord,
  type EventType,
  type ExportRecord,
  formatTimestamp,
  type HandoffEntry,
  type MessageRecord,
  processEvent,
} from "@conversation-export/domain";
import { type ClickhouseUser, type Stack, startStack } from "@conversation-export/local-stack";
import {
  createBatch,
  createReader,
  createWriter,
  migrate,
  type Page,
  type PagePosition,
  type PageQuery,
  type Reader,
  type Topology,
  type Writer,
} from "@conversation-export/warehouse";
import { rememberShards, SHARDS, topologyOf } from "../support/run/shards.ts";
import { runSql } from "../support/run/warehouse-sql.ts";

/** 2026-10-04T00:00:00Z in µs. */
export const DAY_0 = 1_791_072_000_000_000;
export const SECOND = 1_000_000;
export const DAY = 86_400 * SECOND;

export const seed = Number(process.env["FC_SEED"] ?? 1);

export type Random = {
  below(limit: number): number;
  chance(share: number): boolean;
  pick<T>(list: readonly T[]): T;
};

/** A repeatable source of randomness (mulberry32); every test gives another `salt`. */
export function createRandom(salt: number): Random {
  let state = (seed ^ Math.imul(salt, 0x9e37_79b9)) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    chance: (share) => next() < share,
    pick: (list) => list[Math.floor(next() * list.length)] as never,
  };
}

export function shuffled<T>(random: Random, list: readonly T[]): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i -= 1) {
    const j = random.below(i + 1);
    [out[i], out[j]] = [out[j] as T, out[i] as T];
  }
  return out;
}

/** Resolves when `condition` holds; fails after ten seconds. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within 10 s: ${what}`);
    await sleep(20);
  }
}

export type Warehouse = {
  readonly stack: Stack;
  readonly topology: Topology;
  readonly writer: Writer;
  readonly reader: Reader;
  /** The answer of one statement; throws when ClickHouse refuses it. */
  sql(statement: string, user?: ClickhouseUser): Promise<string>;
  /** Inserts the records as one batch; all statements, or the first few. */
  write(records: readonly ExportRecord[], uploadedAt?: number, statements?: number): Promise<void>;
  stop(): Promise<void>;
};

/** Starts a ClickHouse with all tables, in which parts stay unmerged. */
export async function startWarehouse(): Promise<Warehouse> {
  const dir = await mkdtemp(join(tmpdir(), "warehouse-test-"));
  const stack = await startStack({ dir, servers: ["clickhouse"], shards: SHARDS });
  const topology = topologyOf(stack);
  await migrate({ url: stack.clickhouse.url("migrator"), topology });
  const writer = createWriter({ url: stack.clickhouse.url("writer"), application: "test" });
  const reader = createReader({ url: stack.clickhouse.url("reader"), application: "test" });

  rememberShards(stack);
  const sql = async (statement: string, user: ClickhouseUser = "migrator"): Promise<string> =>
    (await runSql(stack.clickhouse.url(user), statement)).trim();

  await sql("SYSTEM STOP MERGES");
  return {
    stack,
    topology,
    writer,
    reader,
    sql,
    async write(records, uploadedAt = DAY_0, statements = 3) {
      const [first] = records;
      if (first === undefined) return;
      const batch = createBatch(first.type, 1024);
      for (const record of records) batch.add(record);
      batch.fillUpload(uploadedAt);
      for (const insert of batch.inserts(0, batch.records()).slice(0, statements))
        await writer.insert(insert);
    },
    async stop() {
      await reader.close();
      await writer.close();
      await stack.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export type Attributes = {
  readonly client: string;
  /** µs: the version of the record */
  readonly time: number;
  readonly offset?: number;
  readonly partition?: number;
};

function processed(type: EventType, id: unknown, attributes: Attributes, data: unknown): ExportRecord {
  const { client, time, offset = 0, partition = 0 } = attributes;
  const event = {
    specversion: "1.0",
    id: "e",
    source: "test",
    type,
    time: formatTimestamp(time),
    subject: id,
    clientid: client,
    data,
  };
  const position = { partition, offset };
  const outcome = processEvent({ text: JSON.stringify(event), headers: {}, position }, type);
  if (outcome.kind !== "accepted") throw new Error(`${outcome.kind} ${JSON.stringify(outcome)}`);
  return outcome.record;
}

/** A conversation as it comes out of the processing of its event. `created` and `updated` in µs. */
export function conversation(
  attributes: Attributes,
  id: string,
  created: number,
  updated: number,
  data: Record<string, unknown> = {},
): ConversationRecord {
  const record = processed("conversation.exported", id, attributes, {
    _id: id,
    date_created: formatTimestamp(created),
    date_updated: formatTimestamp(updated),
    ...data,
  });
  return record as ConversationRecord;
}

/** A message as it comes out of the processing of its event. */
export function message(
  attributes: Attributes,
  id: string,
  created: number,
  conversationId: string,
  data: Record<string, unknown> = {},
): MessageRecord {
  const record = processed("message.exported", id, attributes, {
    _id: id,
    date_created: formatTimestamp(created),
    conversation_id: conversationId,
    ...data,
  });
  return record as MessageRecord;
}

/** An end user as it comes out of the processing of its event. */
export function endUser(
  attributes: Attributes,
  id: string,
  data: Record<string, unknown> = {},
): EndUserRecord {
  const created = { end_user_id: id, created_at: formatTimestamp(DAY_0) };
  return processed("end_user.exported", id, attributes, { ...created, ...data }) as EndUserRecord;
}

/** The public JSON, with the handoffs given. */
export function publicText(
  record: ConversationRecord | MessageRecord,
  uploadedAt: number = DAY_0,
  handoffs: readonly string[] = [],
): string {
  const text = record.beforeUpload + formatTimestamp(uploadedAt) + record.afterUpload;
  return record.type === "conversation.exported" ? `${text}[${handoffs.join(",")}]${record.tail}` : text;
}

/** The texts of the records of a page, cut where a comma stands between them. */
export function splitRecords(page: string): string[] {
  const records: string[] = [];
  let depth = 0;
  let start = 0;
  let isText = false;
  for (let at = 0; at < page.length; at += 1) {
    const char = page[at];
    if (isText) {
      if (char === "\\") at += 1;
      else if (char === '"') isText = false;
      continue;
    }
    if (char === '"') isText = true;
    else if (char === "{") depth += 1;
    else if (char === "}") {
      depth -= 1;
      if (depth === 0) {
        records.push(page.slice(start, at + 1));
        if (at + 1 < page.length && page[at + 1] !== ",") throw new Error(`no comma behind ${at}`);
        start = at + 2;
      }
    }
  }
  if (start < page.length) throw new Error(`text behind the last record: ${page.slice(start, start + 100)}`);
  return records;
}

export async function readPage(page: Page): Promise<string[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of page.records) chunks.push(chunk as Buffer);
  return splitRecords(Buffer.concat(chunks).toString());
}

export type Walked = {
  readonly records: string[];
  readonly pages: { rows: number; next: PagePosition | null; whole: boolean }[];
};

/** Reads all pages of a window; `between` is called after each. */
export async function walk<Q extends PageQuery>(
  read: (query: Q) => Promise<Page>,
  query: Q,
  between: (records: string[]) => Promise<void> = () => Promise.resolve(),
): Promise<Walked> {
  const walked: Walked = { records: [], pages: [] };
  let after = query.after;
  for (;;) {
    const page = await read(after === undefined ? query : { ...query, after });
    const records = await readPage(page);
    if (records.length !== page.rows)
      throw new Error(`${records.length} records in a page of ${page.rows} rows`);
    walked.records.push(...records);
    walked.pages.push({ rows: page.rows, next: page.next, whole: page.nextIsWhole });
    if (walked.pages.length > 10_000) throw new Error("the walk does not end");
    if (page.next === null) return walked;
    after = page.next;
    await between(records);
  }
}

function isLater(a: ExportRecord, b: ExportRecord): boolean {
  const x = a.version;
  const y = b.version;
  if (x.exportedAt !== y.exportedAt) return x.exportedAt > y.exportedAt;
  if (x.partition !== y.partition) return x.partition > y.partition;
  return x.offset >= y.offset;
}

function bytes(text: string): Buffer {
  return Buffer.from(text);
}

export type Arrival<R extends ExportRecord> = { readonly record: R; readonly uploadedAt: number };
export type Expected<R> = {
  readonly id: string;
  readonly date: number;
  readonly text: string;
  readonly record: R;
};

/** The latest version of each record, in the order of arrival; of equal versions the later arrival. */
function latestOf<R extends ExportRecord>(
  arrivals: readonly Arrival<R>[],
  client: string,
): Map<string, Arrival<R>> {
  const latest = new Map<string, Arrival<R>>();
  for (const arrival of arrivals) {
    if (arrival.record.clientId !== client) continue;
    const seen = latest.get(arrival.record.id);
    if (seen === undefined || isLater(arrival.record, seen.record)) latest.set(arrival.record.id, arrival);
  }
  return latest;
}

/** Rule 5 of the specification, by trying all entries against all. */
function mergedHandoffs(
  arrivals: readonly Arrival<ConversationRecord>[],
  client: string,
  id: string,
): string[] {
  const winners = new Map<string, { entry: HandoffEntry; record: ConversationRecord }>();
  for (const { record } of arrivals) {
    if (record.clientId !== client || record.id !== id) continue;
    for (const entry of record.handoffs) {
      const key = JSON.stringify([entry.targetKind, entry.target]);
      const seen = winners.get(key);
      if (
        seen === undefined ||
        entry.dateCreated > seen.entry.dateCreated ||
        (entry.dateCreated === seen.entry.dateCreated && isLater(record, seen.record))
      ) {
        winners.set(key, { entry, record });
      }
    }
  }
  return [...winners.values()]
    .map(({ entry }) => entry)
    .sort(
      (a, b) =>
        a.dateCreated - b.dateCreated ||
        Buffer.compare(bytes(a.target), bytes(b.target)) ||
        (a.targetKind === "handoff_id" ? -1 : 1),
    )
    .map(({ entry }) => entry);
}

function inWindow<R>(expected: Expected<R>[], since: number, to: number): Expected<R>[] {
  return expected
    .filter(({ date }) => date >= since && date < to)
    .sort((a, b) => a.date - b.date || Buffer.compare(bytes(a.id), bytes(b.id)));
}

/** What a window of conversations must show. */
export function expectConversations(
  arrivals: readonly Arrival<ConversationRecord>[],
  window: { client: string; by: "dateCreated" | "dateUpdated"; since: number; to: number },
): Expected<ConversationRecord>[] {
  const expected = [...latestOf(arrivals, window.client).values()].map(({ record, uploadedAt }) => {
    const handoffs = mergedHandoffs(arrivals, window.client, record.id);
    const text = publicText(record, uploadedAt, handoffs);
    return { id: record.id, date: record[window.by], text, record };
  });
  return inWindow(expected, window.since, window.to);
}

/** What a window of messages must show. */
export function expectMessages(
  arrivals: readonly Arrival<MessageRecord>[],
  window: { client: string; since: number; to: number; conversationId?: string },
): Expected<MessageRecord>[] {
  const expected = [...latestOf(arrivals, window.client).values()]
    .filter(
      ({ record }) => window.conversationId === undefined || record.conversationId === window.conversationId,
    )
    .map(({ record, uploadedAt }) => ({
      id: record.id,
      date: record.dateCreated,
      text: publicText(record, uploadedAt),
      record,
    }));
  return inWindow(expected, window.since, window.to);
}

/** The pages that a list must be cut into; `wholeTies` as in the page query. */
export function expectPages(
  dates: readonly number[],
  pageSize: number,
  wholeTies: boolean,
  extension = 10_000,
): number[] {
  const pages: number[] = [];
  let at = 0;
  while (at < dates.length) {
    let end = Math.min(at + pageSize, dates.length);
    if (wholeTies && end < dates.length && dates[end] === dates[end - 1]) {
      const tie = dates[end];
      const start = dates.indexOf(tie as number, at);
      if (start > at) end = start;
      else while (end < dates.length && dates[end] === tie && end - at < pageSize + extension) end += 1;
    }
    pages.push(end - at);
    at = end;
  }
  return pages;
}
