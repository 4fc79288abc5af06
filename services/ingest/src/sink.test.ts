import { type Micros, processEvent } from "@conversation-export/domain";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import {
  type Batch,
  createBatch,
  type TableInsert,
  WarehouseError,
  type Writer,
} from "@conversation-export/warehouse";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createIngestMetrics } from "./ingest-metrics.ts";
import { createKeepTrying } from "./keep-trying.ts";
import type { LandingGap } from "./landing-gap.ts";
import { createSink } from "./sink.ts";
import { createUploads, type WriteGate } from "./upload-instant.ts";

const never = (): Promise<never> => Promise.reject(new Error("not asked for"));

const TICKET = { notAfter: Infinity, uploadFrom: 0 };
const open: WriteGate = { untilOpen: () => Promise.resolve(TICKET) };

const START = Date.parse("2026-11-01T00:00:00Z");
const MINUTE = 60_000;

const batchOf = (records: number): Batch => {
  const batch = createBatch("conversation.exported", 1024, { landingDays: 14 });
  for (let offset = 0; offset < records; offset += 1) {
    const data = { _id: `c${offset}`, date_created: "2026-10-04T00:00:00Z" };
    const attributes = {
      specversion: "1.0",
      id: "e",
      source: "s",
      time: "2026-10-05T00:00:00Z",
      clientid: "acme",
    };
    const value = Buffer.from(JSON.stringify({ ...attributes, type: "conversation.exported", data }));
    const place = { topic: "conversations", partition: 0, offset };
    const outcome = processEvent(
      { text: value.toString(), headers: {}, position: place },
      "conversation.exported",
    );
    if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
    batch.add(outcome.record, { ...place, key: null, headers: {}, value, timestamp: START });
  }
  return batch;
};

const away = (): WarehouseError =>
  new WarehouseError("warehouse_unavailable", "ECONNREFUSED", true, undefined);
const refuses = (): WarehouseError =>
  new WarehouseError("warehouse_refused_data", "CANNOT_PARSE_TEXT", false, undefined);

/** A sink over a warehouse that fails as `fail` says; what went in is noted with its instant of upload. */
const startSink = (
  options: {
    fail?: (insert: TableInsert, attempt: number) => Error | undefined;
    gate?: WriteGate;
    gap?: LandingGap | null;
  } = {},
) => {
  const inserted: { table: string; rows: number; at: Micros }[] = [];
  const attempts: string[] = [];
  let upload = 0;
  const writer: Writer = {
    insert: (insert) => {
      attempts.push(insert.table);
      const error = options.fail?.(insert, attempts.length);
      if (error !== undefined) return Promise.reject(error);
      inserted.push({ table: insert.table, rows: insert.rows, at: upload });
      return Promise.resolve();
    },
    ping: never,
  };
  const metrics = createIngestMetrics(createMetrics({ service: "test" }));
  const uploads = createUploads({
    gate: options.gate ?? open,
    gap: options.gap ?? null,
    uploadTime: () => Date.now() * 1_000,
  });
  const keepTrying = createKeepTrying({ metrics, log: createLogger({ service: "test", level: "silent" }) });
  const sink = createSink({ writer, uploads, keepTrying, metrics });
  const write = (batch: Batch, signal = new AbortController().signal, after?: Promise<unknown>) => {
    const fill = batch.fillUpload.bind(batch);
    const noting: Batch = {
      ...batch,
      fillUpload: (instant) => {
        upload = instant;
        fill(instant);
      },
    };
    return sink.write(noting, signal, after);
  };
  return { uploads, write, inserted, attempts };
};

describe("a batch", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: START, toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("lands before the tables that readers see, with one instant of upload", async () => {
    const { uploads, write, inserted } = startSink();
    expect(uploads.oldest()).toBe(null);
    const written = write(batchOf(2));
    expect(uploads.oldest()).toBe(START * 1000);
    expect(await written).toEqual({ refused: [], reusable: true });
    expect(inserted).toEqual([
      { table: "landing", rows: 2, at: START * 1000 },
      { table: "record_dates", rows: 2, at: START * 1000 },
      { table: "changes", rows: 2, at: START * 1000 },
      { table: "conversation_updates", rows: 2, at: START * 1000 },
      { table: "conversations", rows: 2, at: START * 1000 },
    ]);
    expect(uploads.oldest()).toBe(null);
  });

  it("lands once when one of its records is refused", async () => {
    const { write, inserted } = startSink({
      fail: ({ table, body }) => (table === "conversations" && body.includes("c2") ? refuses() : undefined),
    });
    expect(await write(batchOf(4))).toEqual({ refused: [2], reusable: false });
    expect(inserted.filter(({ table }) => table === "landing")).toEqual([
      { table: "landing", rows: 4, at: START * 1000 },
    ]);
    const rows = inserted.filter(({ table }) => table === "conversations").map((one) => one.rows);
    expect(rows).toEqual([2, 1]);
  });

  it("loses only the record whose event cannot land", async () => {
    const { write, inserted } = startSink({
      fail: ({ table, body }) => (table === "landing" && body.includes("c0") ? refuses() : undefined),
    });
    expect((await write(batchOf(3))).refused).toEqual([0]);
    const rows = (wanted: string): number =>
      inserted.reduce((sum, { table, rows }) => sum + (table === wanted ? rows : 0), 0);
    expect([rows("landing"), rows("conversations")]).toEqual([2, 2]);
  });

  it("keeps its instant while it waits for up to a minute", async () => {
    let isAway = true;
    const { write, inserted, attempts } = startSink({ fail: () => (isAway ? away() : undefined) });
    const written = write(batchOf(1));
    await expect.poll(() => attempts.length).toBeGreaterThan(1);
    vi.setSystemTime(START + MINUTE);
    isAway = false;
    await written;
    expect(inserted.map(({ at }) => at)).toEqual(Array.from({ length: 5 }, () => START * 1000));
  });

  it("is begun again with a new instant when it has waited for longer, in all its tables", async () => {
    let isAway = true;
    const { uploads, write, inserted, attempts } = startSink({
      fail: ({ table }) => (table === "conversations" && isAway ? away() : undefined),
    });
    const written = write(batchOf(1));
    await expect.poll(() => attempts).toContain("conversations");
    expect(uploads.oldest()).toBe(START * 1000);
    vi.setSystemTime(START + 2 * MINUTE);
    await expect.poll(() => uploads.oldest()).toBeGreaterThanOrEqual((START + 2 * MINUTE) * 1000);
    const later = uploads.oldest();
    isAway = false;
    await written;
    expect(inserted).toEqual([
      { table: "landing", rows: 1, at: START * 1000 },
      { table: "record_dates", rows: 1, at: START * 1000 },
      { table: "changes", rows: 1, at: START * 1000 },
      { table: "conversation_updates", rows: 1, at: START * 1000 },
      { table: "landing", rows: 1, at: later },
      { table: "record_dates", rows: 1, at: later },
      { table: "changes", rows: 1, at: later },
      { table: "conversation_updates", rows: 1, at: later },
      { table: "conversations", rows: 1, at: later },
    ]);
  });

  it("asks the gate before every attempt, and is not older than a minute behind it", async () => {
    const shut = Promise.withResolvers<void>();
    let asked = 0;
    const gate: WriteGate = {
      untilOpen: async () => {
        asked += 1;
        if (asked === 3) await shut.promise;
        return TICKET;
      },
    };
    const { write, inserted, attempts } = startSink({
      gate,
      fail: (_, attempt) => (attempt === 2 ? away() : undefined),
    });
    const written = write(batchOf(1));
    await expect.poll(() => asked).toBe(3);
    expect(attempts).toEqual(["landing", "record_dates"]);
    vi.setSystemTime(START + 5 * MINUTE);
    shut.resolve();
    await written;
    const at = (START + 5 * MINUTE) * 1000;
    expect(inserted.slice(1)).toEqual([
      { table: "landing", rows: 1, at },
      { table: "record_dates", rows: 1, at },
      { table: "changes", rows: 1, at },
      { table: "conversation_updates", rows: 1, at },
      { table: "conversations", rows: 1, at },
    ]);
  });

  it("lands at once, and shows in the other tables behind the batch before it", async () => {
    const before = Promise.withResolvers<void>();
    const { write, attempts } = startSink();
    const written = write(batchOf(1), undefined, before.promise);
    await expect.poll(() => attempts).toEqual(["landing"]);
    before.resolve();
    await written;
    expect(attempts).toEqual(["landing", "record_dates", "changes", "conversation_updates", "conversations"]);
  });

  it("shows in no table when the batch before it was not settled", async () => {
    const { write, attempts } = startSink();
    const before = Promise.reject(new Error("not settled"));
    await expect(write(batchOf(1), undefined, before)).rejects.toThrow("not settled");
    expect(attempts).toEqual(["landing"]);
  });

  it("is given up when it is told to while the gate is shut", async () => {
    const abort = new AbortController();
    const asked = Promise.withResolvers<void>();
    const gate: WriteGate = {
      untilOpen: (signal) => {
        asked.resolve();
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
      },
    };
    const { uploads, write, attempts } = startSink({ gate });
    const written = expect(write(batchOf(1), abort.signal)).rejects.toThrow("stop");
    await asked.promise;
    abort.abort(new Error("stop"));
    await written;
    expect(attempts).toEqual([]);
    expect(uploads.oldest()).toBe(null);
  });

  it("is written only behind a gap that covers its instant", async () => {
    let isCovered = false;
    const cover = async (): Promise<void> => {
      await expect.poll(() => attempts).toEqual([]);
      isCovered = true;
    };
    const { write, attempts } = startSink({
      gap: { cover },
      fail: () => (isCovered ? undefined : refuses()),
    });
    expect((await write(batchOf(1))).refused).toEqual([]);
    expect([isCovered, attempts.length]).toEqual([true, 5]);
  });
});
