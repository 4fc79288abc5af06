import { readMessage, type WriteTicket } from "@conversation-export/domain";
import {
  type Batch,
  createBatch,
  isStaleTicket,
  type TableInsert,
  WarehouseError,
} from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { exportedMessage, NOW } from "../exported-message.fixture.ts";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createKeepTrying } from "./keep-trying.ts";
import { createSink } from "./sink.ts";

const TICKET: WriteTicket = { stamp: 5_000, generation: 3 };

const batchOf = (records: number): Batch => {
  const batch = createBatch("message.exported", 1024, { landingDays: 14 });
  for (let offset = 0; offset < records; offset += 1) {
    const source = exportedMessage(offset);
    const outcome = readMessage(source, "message.exported", { maxTimeAheadMs: 0, now: NOW });
    if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
    batch.add(outcome.record, source);
  }
  return batch;
};

const away = (): WarehouseError =>
  new WarehouseError("warehouse_unavailable", "ECONNREFUSED", true, undefined);
const refuses = (): WarehouseError =>
  new WarehouseError("warehouse_refused_data", "CANNOT_PARSE_TEXT", false, undefined);

const isStale = (): WarehouseError =>
  new WarehouseError("warehouse_unavailable", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", true, undefined);

const TABLES = ["landing", "record_dates", "changes", "messages"];

const STAMP = Buffer.from(BigInt64Array.of(BigInt(TICKET.stamp)).buffer);

const startSink = (fail: (insert: TableInsert, attempt: number) => Error | undefined = () => undefined) => {
  const inserted: { table: string; rows: number; isStamped: boolean }[] = [];
  const attempts: string[] = [];
  const tickets = new Set<WriteTicket>();
  const { metrics, log } = createTestMetrics();
  const sink = createSink({
    writer: {
      insert: (insert, ticket) => {
        attempts.push(insert.table);
        tickets.add(ticket);
        const error = fail(insert, attempts.length);
        if (error !== undefined) return Promise.reject(error);
        inserted.push({ table: insert.table, rows: insert.rows, isStamped: insert.body.includes(STAMP) });
        return Promise.resolve();
      },
    },
    keepTrying: createKeepTrying({ metrics, log }),
    metrics,
  });
  const write = (
    batch: Batch,
    options: { range?: { from: number; to: number }; signal?: AbortSignal } = {},
  ) => {
    const { range = { from: 0, to: batch.records() }, signal = new AbortController().signal } = options;
    return sink.write(batch, range, TICKET, signal);
  };
  return { write, inserted, attempts, tickets };
};

describe("a batch", () => {
  it("lands before the tables that readers see, with the stamp of its ticket", async () => {
    const { write, inserted, tickets } = startSink();
    expect(await write(batchOf(2))).toEqual({ refused: [], reusable: true });
    expect(inserted).toEqual(
      TABLES.map((table) => ({ table, rows: 2, isStamped: table !== "record_dates" })),
    );
    expect([...tickets]).toEqual([TICKET]);
  });

  it("is written in part when a part is asked for", async () => {
    const { write, inserted } = startSink(({ table, body }) =>
      table === "messages" && body.includes("m3") ? refuses() : undefined,
    );
    expect((await write(batchOf(5), { range: { from: 2, to: 4 } })).refused).toEqual([3]);
    expect(inserted.find(({ table }) => table === "landing")).toMatchObject({ rows: 2 });
    expect(inserted.filter(({ table }) => table === "messages")).toMatchObject([{ rows: 1 }]);
  });

  it("lands once when one of its records is rejected", async () => {
    const { write, inserted } = startSink(({ table, body }) =>
      table === "messages" && body.includes("m2") ? refuses() : undefined,
    );
    expect(await write(batchOf(4))).toEqual({ refused: [2], reusable: false });
    expect(inserted.filter(({ table }) => table === "landing")).toEqual([
      { table: "landing", rows: 4, isStamped: true },
    ]);
    const rows = inserted.filter(({ table }) => table === "messages").map((one) => one.rows);
    expect(rows).toEqual([2, 1]);
  });

  it("loses only the record whose event cannot land", async () => {
    const { write, inserted } = startSink(({ table, body }) =>
      table === "landing" && body.includes("m0") ? refuses() : undefined,
    );
    expect((await write(batchOf(3))).refused).toEqual([0]);
    const rows = (wanted: string): number =>
      inserted.reduce((sum, { table, rows }) => sum + (table === wanted ? rows : 0), 0);
    expect([rows("landing"), rows("messages")]).toEqual([2, 2]);
  });

  it("is tried again with the same ticket while the warehouse is away", async () => {
    const { write, inserted, attempts, tickets } = startSink((_, attempt) =>
      [1, 3].includes(attempt) ? away() : undefined,
    );
    expect(await write(batchOf(1))).toEqual({ refused: [], reusable: false });
    expect(attempts).toHaveLength(TABLES.length + 2);
    expect(inserted.map(({ table }) => table)).toEqual(TABLES);
    expect([...tickets]).toEqual([TICKET]);
  });

  it("is not written any further once its ticket is stale, and needs another one", async () => {
    const { write, attempts } = startSink(({ table }) => (table === "changes" ? isStale() : undefined));
    await expect(write(batchOf(2))).rejects.toSatisfy(isStaleTicket);
    expect(attempts).toEqual(["landing", "record_dates", "changes"]);
  });

  it("is given up when its signal aborts while the warehouse is away", async () => {
    const abort = new AbortController();
    const { write, inserted, attempts } = startSink(() => away());
    const written = expect(write(batchOf(1), { signal: abort.signal })).rejects.toThrow("stop");
    await expect.poll(() => attempts.length).toBeGreaterThan(0);
    abort.abort(new Error("stop"));
    await written;
    expect(inserted).toEqual([]);
  });
});
