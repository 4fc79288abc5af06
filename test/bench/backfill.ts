import { PLAIN_SAMPLE } from "./ingest-run.ts";
import {
  addUp,
  createCorrectRecords,
  createLandingBackfill,
  createPendingWrites,
} from "@conversation-export/jobs";
import { END_OF_TIME, type EventType, processEvent } from "@conversation-export/domain";
import {
  backfillJob,
  type BackfillCounts,
  type BackfillData,
  type JobContext,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import {
  type Batch,
  createBackfillRuns,
  createBatch,
  createRightRows,
  createWrongRows,
  type Session,
} from "@conversation-export/warehouse";
import { createSample, type RecordKind } from "../sample/index.ts";
import { uploadNow } from "../warehouse/upload-now.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import type { Result } from "./report.ts";
import { createMeter } from "./server-cost.ts";

const TYPES: Readonly<Record<RecordKind, EventType>> = {
  conversation: "conversation.exported",
  message: "message.exported",
  end_user: "end_user.exported",
};
const EXPORTS = 2;
const EVENTS_OF_CONVERSATION = 5 * EXPORTS;
const BATCH = 5_000;
/** One handoff in so many stands under a wrong key. */
const WRONG_IN = 20;
const DATA = backfillJob.data.parse({ source: { kind: "landing" } });

/** Writes about so many events as ingest does, with bugs in a share of the messages. */
const fill = async (warehouse: Warehouse, events: number): Promise<number> => {
  const batches = new Map<EventType, Batch>();
  let written = 0;
  const flush = async (type: EventType): Promise<void> => {
    const batch = batches.get(type);
    batches.delete(type);
    if (batch === undefined) return;
    batch.fillUpload(Date.now() * 1_000);
    for (const insert of batch.inserts(0, batch.records())) await warehouse.writer.insert(insert);
  };
  const sample = createSample({
    ...PLAIN_SAMPLE,
    conversations: Math.ceil(events / EVENTS_OF_CONVERSATION),
    messagesPerConversation: 4,
    exportsPerConversation: EXPORTS,
  });
  for (const event of sample) {
    const type = TYPES[event.kind];
    const position = { partition: 0, offset: written };
    const value = Buffer.from(event.value ?? []);
    const outcome = processEvent({ text: value.toString(), headers: event.headers, position }, type);
    if (outcome.kind !== "accepted") continue;
    const batch = batches.get(type) ?? createBatch(type, 1 << 20, { landingDays: 14 });
    batches.set(type, batch);
    const { record } = outcome;
    const isWrong = record.type === "message.exported" && written % WRONG_IN === 0;
    batch.add(isWrong ? { ...record, dateCreated: record.dateCreated + 3_600_000_000 } : record, {
      topic: type,
      ...position,
      key: null,
      value,
      headers: event.headers,
      timestamp: Date.now(),
    });
    written += 1;
    if (batch.records() >= BATCH) await flush(type);
  }
  for (const type of batches.keys()) await flush(type);
  return written;
};

const backfillOf = (session: Session) => {
  const runs = createBackfillRuns({ session });
  return createLandingBackfill({
    runs,
    wrong: createWrongRows({ session, runUpload: uploadNow }),
    landing: { coverage: async () => ({ since: 0, asOf: END_OF_TIME }) },
    settled: { load: async () => ({ until: END_OF_TIME, watermarks: {} }) },
    correct: createCorrectRecords({
      runs,
      rows: createRightRows({ session }),
      gate: {
        suppresses: async (records) => records.map(() => false),
        wouldSuppress: async (records) => records.map(() => false),
        untilOpen: async () => ({ notAfter: Date.now() + 60_000, uploadFrom: 0 }),
        uploadTime: () => Date.now() * 1_000,
      },
      pending: createPendingWrites(),
    }),
    exclusive: { run: (_, signal, work) => work(signal) },
    isAlive: async () => false,
    typeOf: () => undefined,
    maxTimeAheadMs: 0,
    now: () => 0,
    elapsed: () => performance.now(),
    partEvents: 20_000,
  });
};

/** Runs a whole backfill in this process. */
const run = async (session: Session): Promise<BackfillCounts> => {
  const context: JobContext<BackfillData> = {
    id: "bench",
    data: DATA,
    attempt: 1,
    signal: new AbortController().signal,
    log: createLogger({ service: "bench", level: "error" }),
    state: undefined,
    save: async () => {},
    progress: async () => {},
  };
  const backfill = backfillOf(session);
  const parts = await backfill.split(context);
  const counts: BackfillCounts[] = [];
  for (const part of parts) counts.push(await backfill.runPart(context, part, false));
  const [first] = parts;
  if (first !== undefined) counts.push(await backfill.finish(context, first, false));
  return addUp(counts);
};

/** Corrects a landing table of a sixteenth, a quarter and all of `events`, and compares the work for each event. */
export const benchBackfill = async (events: number, log: (line: string) => void): Promise<Result[]> => {
  const costs: number[] = [];
  for (const share of [16, 4, 1]) {
    const warehouse = await startWarehouse();
    try {
      await warehouse.sql("SYSTEM START MERGES");
      const written = await fill(warehouse, Math.ceil(events / share));
      for (const table of ["landing", "messages", "conversations"])
        await warehouse.sql(`OPTIMIZE TABLE ${table}`).catch(() => {});
      const session = warehouse.session("jobs");
      const meter = await createMeter(warehouse.stack.clickhouse.url("migrator"));
      const before = process.cpuUsage();
      let counts: BackfillCounts | undefined;
      const server = await meter(async () => {
        counts = await run(session);
      });
      const { user, system } = process.cpuUsage(before);
      const own = (user + system) / 1_000;
      const ms = ((server.ms + own) / written) * 1_000;
      costs.push(ms);
      log(
        `backfill of ${written} events: ${(server.ms / 1_000).toFixed(1)} s of ClickHouse, ${(own / 1_000).toFixed(1)} s of the job, ${(server.rows / written).toFixed(1)} rows read for each event; ${counts?.records.examined} records examined, ${counts?.records.different} different, ${counts?.rows.deleted.messages} messages deleted; peak of the job ${(process.resourceUsage().maxRSS / 1_024).toFixed(0)} MB`,
      );
    } finally {
      await warehouse.stop();
    }
  }
  const [small = Number.NaN, , large = Number.NaN] = costs;
  const ratio = large / small;
  return [{ name: "backfill_growth", ours: large, peer: small, ratio, goal: "<=1.3", reached: ratio <= 1.3 }];
};
