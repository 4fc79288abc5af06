import { type EventType, processEvent, RECORD_KINDS } from "@conversation-export/domain";
import {
  createBatch,
  candidatesOfPage,
  createReader,
  createWriter,
  factsStatement,
  PAGED_LISTS,
  type PageQuery,
  type TableInsert,
} from "@conversation-export/warehouse";
import { createSample } from "../sample/index.ts";
import type { System } from "../system/system.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import type { Figure } from "./capacity.ts";
import { PLAIN_SAMPLE, STORED } from "./ingest-run.ts";
import { pageBefore } from "./page-before.ts";
import { processorTimes } from "./processor-time.ts";
import type { Result } from "./report.ts";
import { openSql, runSql } from "./warehouse-http.ts";
import { fillWindow, mergesIdle, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const EXPORTS = 3;
/** Places in the window at which pages begin. */
const PLACES = 5;
/** Ids by client: how much a look-up by id costs depends on whether the ids of a page stand together. */
const CLIENTS = { "bench-ascending": "ascending", "bench-random": "random" } as const;
const SCALES = [1, 4, 16] as const;
const BATCH = 10_000;
const MESSAGES_EACH = 4;

type Log = (line: string) => void;

const atMost = (name: string, [ours, peer]: readonly [number, number], goal: number): Result => {
  const ratio = ours / peer;
  return { name, ours, peer, ratio, goal: `<=${goal}`, reached: ratio <= goal };
};

const queryOf = (clientId: string, place: number, pageSize: number): PageQuery => ({
  clientId,
  since: WINDOW_START + Math.floor((WINDOW_MICROS * 0.9 * place) / PLACES),
  to: WINDOW_START + WINDOW_MICROS,
  pageSize,
  wholeTies: false,
});

const discard = async (stream: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of stream);
};

/** Pages of both sizes and both kinds of ids, as they are read now and as they were before. */
const comparePages = async (system: System, log: Log): Promise<Result[]> => {
  const url = system.stack.clickhouse.url("migrator");
  const readerUrl = system.stack.clickhouse.url("reader");
  const sessions = createSessions();
  const session = sessions.open(readerUrl);
  const reader = createReader({ session, lookups: session });
  const results: Result[] = [];
  const compare = async (name: string, pageSize: number, calls: number, goals: readonly number[]) => {
    for (const [index, [clientId, ids]] of Object.entries(CLIENTS).entries()) {
      const now = async (call: number): Promise<void> => {
        const page = await reader.conversationsByCreation(queryOf(clientId, call % PLACES, pageSize));
        await discard(page.records);
      };
      const before = async (call: number): Promise<void> => {
        const { sql, ...options } = pageBefore(queryOf(clientId, call % PLACES, pageSize));
        await discard(await openSql(readerUrl, sql, options));
      };
      const [ours = Number.NaN, peer = Number.NaN] = await processorTimes(
        { url, rounds: 9, warm: 2, calls },
        [now, before],
      );
      log(`${name}, ${ids} ids: ${ours.toFixed(0)} ms of processor time against ${peer.toFixed(0)} ms`);
      results.push(atMost(`${name}_${ids}`, [ours, peer], goals[index] ?? Number.NaN));
    }
  };
  await compare("created_page_before_after", 10_000, PLACES, [1.1, 2.5]);
  await compare("small_page_before_after", 100, 4 * PLACES, [1.1, 1.5]);
  await sessions.close();
  return results;
};

/** The INSERTs of a sample as ingest sends them, batch by batch. */
const insertsOf = (events: number): TableInsert[] => {
  const sample = createSample({
    ...PLAIN_SAMPLE,
    conversations: Math.ceil(events / (1 + MESSAGES_EACH)),
    messagesPerConversation: MESSAGES_EACH,
    exportsPerConversation: 1,
  });
  const inserts: TableInsert[] = [];
  const kinds = { conversation: RECORD_KINDS.conversation.type, message: RECORD_KINDS.message.type };
  const batches = new Map<EventType, ReturnType<typeof createBatch>>();
  const flush = (type: EventType): void => {
    const batch = batches.get(type);
    if (batch === undefined) return;
    batch.fillUpload(Date.now() * 1_000);
    inserts.push(...batch.inserts(0, batch.records()));
    batches.delete(type);
  };
  let offset = 0;
  for (const { kind, value, headers } of sample) {
    if (kind === "end_user" || value === null) continue;
    offset += 1;
    const event = { text: value.toString(), headers, position: { partition: 0, offset } };
    const outcome = processEvent(event, kinds[kind]);
    if (outcome.kind !== "accepted") continue;
    const batch = batches.get(kinds[kind]) ?? createBatch(kinds[kind]);
    batches.set(kinds[kind], batch);
    batch.add(outcome.record);
    if (batch.records() >= BATCH || batch.spansTooManyPartitions()) flush(kinds[kind]);
  }
  for (const type of Object.values(kinds)) flush(type);
  return inserts;
};

/** The INSERTs of ingest with and without the dates of records; the merges after them are measured too. */
const compareInserts = async (system: System, events: number, log: Log): Promise<Result[]> => {
  const url = system.stack.clickhouse.url("migrator");
  const sessions = createSessions();
  const writer = createWriter({ session: sessions.open(system.stack.clickhouse.url("writer")) });
  const all = insertsOf(events);
  const without = all.filter(({ table }) => table !== "record_dates");
  const write = (inserts: readonly TableInsert[], merges: "STOP" | "START") => async (): Promise<void> => {
    for (const table of STORED) await runSql(url, `TRUNCATE TABLE ${table} SYNC`);
    await runSql(url, `SYSTEM ${merges} MERGES`);
    for (const insert of inserts) await writer.insert(insert);
    if (merges === "START") await mergesIdle(url);
  };
  const measure = async (merges: "STOP" | "START"): Promise<readonly [number, number]> => {
    const deps = { url, rounds: 5, warm: 1, calls: 1 };
    const [ours = Number.NaN, peer = Number.NaN] = await processorTimes(deps, [
      write(all, merges),
      write(without, merges),
    ]);
    // ms for all events to µs for one.
    return [(ours * 1_000) / events, (peer * 1_000) / events];
  };
  const inserts = await measure("STOP");
  const merged = await measure("START");
  const inMicros = ([ours, peer]: readonly number[]): string =>
    `${ours?.toFixed(1)} against ${peer?.toFixed(1)} µs`;
  log(`an event: ${inMicros(inserts)} for INSERTs, ${inMicros(merged)} with the merges after them`);
  await sessions.close();
  return [
    atMost("ingest_before_after", inserts, 1.2),
    atMost("ingest_with_merges_before_after", merged, 1.2),
  ];
};

/** What the dates of records cost when there are more of them: rows, bytes, and the question of a page. */
const measureDates = async (
  system: System,
  names: number,
  log: Log,
): Promise<{ readonly results: Result[]; readonly figures: Figure[] }> => {
  const url = system.stack.clickhouse.url("migrator");
  const readerUrl = system.stack.clickhouse.url("reader");
  const figures: Figure[] = [];
  const ask =
    (clientId: string, pageSize: number) =>
    async (call: number): Promise<void> => {
      const query = queryOf(clientId, call % PLACES, pageSize);
      const share = (WINDOW_MICROS * 1.1 * pageSize) / names;
      const bound = Math.ceil(query.since + share);
      const list = PAGED_LISTS.conversationsByCreation;
      const { candidates, parameters } = candidatesOfPage(list, query, { bound });
      const { sql, ...options } = factsStatement(candidates, parameters, false);
      await runSql(readerUrl, sql, options);
    };
  let filled = 1;
  for (const scale of SCALES) {
    for (const clientId of Object.keys(CLIENTS)) {
      const id =
        clientId === "bench-random" ? "lower(hex(sipHash128(number)))" : "leftPad(toString(number), 16, '0')";
      await runSql(
        url,
        `INSERT INTO record_dates (client_id, record, date_created)
        SELECT '${clientId}', concat('${clientId.length}/${clientId}/c/', ${id}), fromUnixTimestamp64Micro(toInt64(number), 'UTC')
        FROM numbers(${filled * names}, ${(scale - filled) * names})
        SETTINGS max_insert_block_size = 20000, max_block_size = 20000, min_insert_block_size_rows = 20000,
          min_insert_block_size_bytes = 0, max_threads = 1`,
      );
    }
    filled = scale;
    await mergesIdle(url);
    const parts = await runSql(
      url,
      `SELECT sum(rows), sum(bytes_on_disk), count() FROM system.parts WHERE active AND database = currentDatabase()
        AND table = 'record_dates' FORMAT TSV`,
    );
    const [rows = 0, bytes = 0, count = 0] = parts.text.trim().split("\t").map(Number);
    figures.push(
      { name: `record_dates_rows_${scale}`, value: rows, unit: "rows" },
      { name: `record_dates_parts_${scale}`, value: count, unit: "parts" },
      { name: `record_dates_bytes_${scale}`, value: bytes / rows, unit: "B/row" },
    );
    const asked = Object.entries(CLIENTS).flatMap(([clientId, ids]) =>
      [100, 10_000].map((pageSize) => ({ name: `${ids}_${pageSize}`, work: ask(clientId, pageSize) })),
    );
    const times = await processorTimes(
      { url, rounds: 7, warm: 2, calls: PLACES },
      asked.map(({ work }) => work),
    );
    for (const [index, { name }] of asked.entries())
      figures.push({ name: `question_${name}_${scale}`, value: times[index] ?? Number.NaN, unit: "ms" });
    log(`record_dates at ${scale} times the size: ${rows} rows in ${count} parts`);
  }
  const question = (ids: string, scale: number): number =>
    figures.find(({ name }) => name === `question_${ids}_10000_${scale}`)?.value ?? Number.NaN;
  const growth = (ids: string, goal: number): Result =>
    atMost(`record_dates_question_${ids}`, [question(ids, 16), question(ids, 1)], goal);
  return { results: [growth("ascending", 1.2), growth("random", 8)], figures };
};

/** What it costs that a record is its client and id, in processor time of ClickHouse. */
export const benchIdentity = async (
  system: System,
  sizes: { readonly conversations: number; readonly events: number },
  log: Log,
): Promise<{ readonly results: Result[]; readonly figures: Figure[] }> => {
  const { conversations, events } = sizes;
  const url = system.stack.clickhouse.url("migrator");
  const results = await compareInserts(system, events, log);
  for (const table of STORED) await runSql(url, `TRUNCATE TABLE ${table} SYNC`);
  for (const [client, ids] of Object.entries(CLIENTS)) {
    const filling = { conversations, exports: EXPORTS, byUpdate: false, client, ids };
    await fillWindow(url, filling, (line) => log(`${client}: ${line}`));
  }
  await mergesIdle(url);
  results.push(...(await comparePages(system, log)));
  const dates = await measureDates(system, conversations, log);
  return { results: [...results, ...dates.results], figures: dates.figures };
};
