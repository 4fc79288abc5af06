import type { WriteTicket } from "@conversation-export/domain";
import type { BusMessage } from "@conversation-export/bus";
import { type TableInsert, WarehouseError } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { createBatchFiller } from "../batch/batch-filler.ts";
import { createBufferBudget } from "../batch/buffer-budget.ts";
import { exportedMessage, NOW } from "../exported-message.fixture.ts";
import { createKeepTrying } from "./keep-trying.ts";
import { createSink } from "./sink.ts";
import { createTopicBatches, type TopicBatch } from "../batch/topic-batch.ts";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createWriteBatch } from "./write-batch.ts";

const TABLES = ["landing", "record_dates", "changes", "messages"];

const message = (offset: number): BusMessage => exportedMessage(offset, { _id: `m${offset}.` });

const stale = (): Error =>
  new WarehouseError("warehouse_unavailable", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", true, undefined);
const refuses = (): Error =>
  new WarehouseError("warehouse_refused_data", "CANNOT_PARSE_TEXT", false, undefined);

type Insert = { readonly table: string; readonly ids: readonly number[]; readonly ticket: WriteTicket };

/** Stamps are 1, 2, 3 … */
const setUp = () => {
  const steps: string[] = [];
  const inserts: Insert[] = [];
  const world = {
    stamp: 0,
    generation: 1,
    judgement: 1,
    suspected: new Set<number>(),
    erased: new Set<number>(),
    onTicket: async (_taken: number): Promise<void> => {},
    onSuppresses: async (_ids: readonly number[]): Promise<void> => {},
    fail: (_insert: Insert): Error | undefined => undefined,
    flights: [] as string[],
  };
  const idOf = ({ id }: { readonly id: string }): number => Number.parseInt(id.slice(1), 10);
  const gate = {
    ticket: async () => {
      world.stamp += 1;
      steps.push(`ticket ${world.stamp}`);
      const { stamp } = world;
      await world.onTicket(stamp);
      return { stamp, generation: world.generation };
    },
    judgement: () => world.judgement,
    suspects: (record: { readonly id: string }) =>
      world.suspected.has(idOf(record)) || world.erased.has(idOf(record)),
    suppresses: async (records: readonly { readonly id: string }[]) => {
      const ids = records.map(idOf);
      steps.push(`suppresses ${ids.join()}`);
      const answers = ids.map((id) => world.erased.has(id));
      await world.onSuppresses(ids);
      return answers;
    },
  };
  const { metrics, log, linesOf } = createTestMetrics();
  const keepTrying = createKeepTrying({ metrics, log });
  const common = { topic: "messages", type: "message.exported", landingDays: 14, now: () => NOW } as const;
  const filler = createBatchFiller({
    ...common,
    maxTimeAheadMs: 300_000,
    budget: createBufferBudget({ maxBytes: 1_000_000, onRoom: () => {} }),
    gate,
    clients: { note: () => {} },
    metrics,
    log,
  });
  const batches = createTopicBatches({ ...common, gate, traces: null });
  const write = createWriteBatch({
    gate,
    gap: {
      cover: async (stamp) => {
        steps.push(`gap ${stamp}`);
      },
    },
    filler,
    sink: createSink({
      writer: {
        insert: async ({ table, body }: TableInsert, ticket) => {
          const text = body.toString("latin1");
          const ids = [...new Set([...text.matchAll(/m(\d+)\./g)].map(([, id]) => Number(id)))];
          const stamp = Buffer.from(BigInt64Array.of(BigInt(ticket.stamp)).buffer);
          if (table === "messages") expect(body.includes(stamp)).toBe(true);
          steps.push(`insert ${table}`);
          const error = world.fail({ table, ids, ticket });
          if (error !== undefined) throw error;
          inserts.push({ table, ids, ticket });
        },
      },
      keepTrying,
      metrics,
    }),
    inFlight: {
      during: async (stamp, isSlow, write) => {
        world.flights.push(`begin ${stamp}${isSlow ? " slow" : ""}`);
        try {
          return await write();
        } finally {
          world.flights.push(`end ${stamp}`);
        }
      },
    },
    keepTrying,
    metrics,
  });
  const batchOf = (...ids: number[]): TopicBatch => {
    const batch = batches.open(1);
    for (const id of ids) filler.add(batch, message(id));
    return batch;
  };
  const settled = Promise.resolve();
  const { signal } = new AbortController();
  return {
    world,
    steps,
    inserts,
    batchOf,
    run: (batch: TopicBatch, before = settled, stop = signal) => write(batch, before, stop),
    into: (table: string) =>
      inserts
        .filter((one) => one.table === table)
        .map(({ ids, ticket }) => [ids.toSorted((one, other) => one - other), ticket.stamp]),
    linesOf,
  };
};

it("takes a ticket, leaves a mark that covers its stamp, and writes with it", async () => {
  const { world, steps, inserts, batchOf, run } = setUp();
  expect(await run(batchOf(0, 1))).toEqual({ refused: [], reusable: true });
  expect(steps).toEqual(["ticket 1", "gap 1", ...TABLES.map((table) => `insert ${table}`)]);
  expect(inserts.map(({ ids, ticket }) => [ids, ticket])).toEqual(
    TABLES.map(() => [[0, 1], { stamp: 1, generation: 1 }]),
  );
  expect(world.flights).toEqual(["begin 1", "end 1"]);
});

it("takes no ticket for a batch without records", async () => {
  const { steps, batchOf, run } = setUp();
  expect(await run(batchOf())).toEqual({ refused: [], reusable: true });
  expect(steps).toEqual([]);
});

it("asks for a ticket again while ClickHouse is away, and ends on a bug and when its signal aborts", async () => {
  const { world, steps, inserts, batchOf, run } = setUp();
  world.onTicket = async (taken) => {
    if (taken === 1) throw new Error("away");
  };
  await run(batchOf(0));
  expect(steps.slice(0, 3)).toEqual(["ticket 1", "ticket 2", "gap 2"]);
  world.onTicket = () => Promise.reject(new TypeError("a bug"));
  await expect(run(batchOf(1))).rejects.toThrow("a bug");
  const stop = new AbortController();
  world.onTicket = () => new Promise(() => stop.abort(new Error("stops")));
  await expect(run(batchOf(2), undefined, stop.signal)).rejects.toThrow("stops");
  expect(new Set(inserts.flatMap(({ ids }) => ids))).toEqual(new Set([0]));
});

it("names the records that the warehouse refuses", async () => {
  const { world, batchOf, run } = setUp();
  world.fail = ({ table, ids }) => (table === "messages" && ids.includes(2) ? refuses() : undefined);
  expect(await run(batchOf(0, 1, 2, 3))).toEqual({ refused: [2], reusable: false });
});

describe("a stale ticket", () => {
  it("begins the batch anew with another one, from its first table on", async () => {
    const { world, steps, batchOf, run, into, linesOf } = setUp();
    world.fail = ({ table, ticket }) => (table === "messages" && ticket.stamp === 1 ? stale() : undefined);
    expect(await run(batchOf(0, 1))).toEqual({ refused: [], reusable: false });
    const tables = TABLES.map((table) => `insert ${table}`);
    expect(steps).toEqual(["ticket 1", "gap 1", ...tables, "ticket 2", "gap 2", ...tables]);
    expect(into("landing")).toEqual([
      [[0, 1], 1],
      [[0, 1], 2],
    ]);
    expect(into("messages")).toEqual([[[0, 1], 2]]);
    expect(await linesOf("conversation_export_ingest_uploads_stamped_anew_total")).toEqual([
      expect.stringMatching(/ 1$/),
    ]);
    // Readers wait for the refused write before anything of it is written again.
    expect(world.flights).toEqual(["begin 1", "end 1", "begin 2 slow", "end 2"]);
  });

  it("halves what is left when it is the second one, and the halves again, down to single records", async () => {
    const { world, batchOf, run, into, linesOf } = setUp();
    world.fail = ({ table, ids }) => (table === "messages" && ids.length > 1 ? stale() : undefined);
    await run(batchOf(0, 1, 2));
    expect(into("landing").map(([ids]) => ids)).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0],
      [1, 2],
      [1, 2],
      [1],
      [2],
    ]);
    expect(into("messages")).toEqual([
      [[0], 3],
      [[1], 6],
      [[2], 7],
    ]);
    expect(await linesOf("conversation_export_ingest_uploads_stamped_anew_total")).toEqual([
      expect.stringMatching(/ 4$/),
    ]);
  });

  it("begins only the range anew that it was taken for, and keeps the names of what was refused", async () => {
    const { world, batchOf, run, into } = setUp();
    world.fail = ({ table, ids, ticket }) => {
      if (table !== "messages") return undefined;
      if (ids.length > 2 || ticket.stamp === 4) return stale();
      return ids.includes(1) || ids.includes(3) ? refuses() : undefined;
    };
    expect((await run(batchOf(0, 1, 2, 3))).refused).toEqual([1, 3]);
    expect(into("messages")).toEqual([
      [[0], 3],
      [[2], 5],
    ]);
  });
});

describe("a new judgement between filling and writing", () => {
  it("has the batch judged again: what was erased is not written, landing included", async () => {
    const { world, steps, inserts, batchOf, run, linesOf } = setUp();
    const batch = batchOf(0, 1, 2);
    world.onTicket = async () => {
      Object.assign(world, { judgement: 2, generation: 2, erased: new Set([1]) });
    };
    await run(batch);
    expect(steps.slice(0, 4)).toEqual(["ticket 1", "gap 1", "suppresses 0,1,2", "insert landing"]);
    expect(inserts.map(({ table, ids, ticket }) => [table, ids, ticket.generation])).toEqual(
      TABLES.map((table) => [table, [0, 2], 2]),
    );
    expect(batch.sources.map(({ offset }) => offset)).toEqual([0, 2]);
    expect(await linesOf("conversation_export_ingest_records_ignored_total")).toEqual([
      expect.stringMatching(/reason="suppressed".* 1$/),
    ]);
  });

  it("counts too when it comes with the ticket that follows a stale one: everything is written anew", async () => {
    const { world, inserts, batchOf, run, into } = setUp();
    world.fail = ({ table, ids, ticket }) => {
      if (table !== "messages") return undefined;
      if (ticket.stamp < 3 || ticket.stamp === 4) return stale();
      return ids.includes(0) ? refuses() : undefined;
    };
    world.onTicket = async (taken) => {
      // After the first half is written.
      if (taken === 5) Object.assign(world, { judgement: 2, erased: new Set([1]) });
    };
    const batch = batchOf(0, 1, 2, 3);
    const { refused } = await run(batch);
    expect(into("messages")).toEqual([
      [[1], 3],
      [[2, 3], 5],
    ]);
    expect(refused.map((index) => batch.sources[index]?.offset)).toEqual([0]);
    expect(inserts.filter(({ ticket }) => ticket.stamp === 5).flatMap(({ ids }) => ids)).not.toContain(1);
  });

  it("leaves nothing to write of a batch that was erased as a whole", async () => {
    const { world, inserts, batchOf, run } = setUp();
    const batch = batchOf(0, 1);
    Object.assign(world, { judgement: 2, erased: new Set([0, 1]) });
    expect((await run(batch)).refused).toEqual([]);
    expect([inserts, batch.sources]).toEqual([[], []]);
  });

  it("is not lost when another one comes while its suspects are settled", async () => {
    const { world, inserts, batchOf, run } = setUp();
    const batch = batchOf(0, 1, 2);
    Object.assign(world, { judgement: 2, erased: new Set([1]) });
    world.onSuppresses = async () => {
      if (world.judgement > 2) return;
      // Another lane has read a later generation, which this record was not judged by.
      Object.assign(world, { judgement: 3, generation: 2, erased: new Set([1, 2]) });
    };
    world.fail = ({ ticket }) => (ticket.generation < 2 ? stale() : undefined);
    await run(batch);
    expect(new Set(inserts.flatMap(({ ids }) => ids))).toEqual(new Set([0]));
  });
});

describe("suspects", () => {
  it("are looked up before the batch is written, and only what is not erased is written", async () => {
    const { world, steps, batchOf, run, into } = setUp();
    Object.assign(world, { suspected: new Set([0]), erased: new Set([1]) });
    await run(batchOf(0, 1, 2));
    expect(steps.slice(0, 4)).toEqual(["ticket 1", "gap 1", "suppresses 0,1,2", "insert landing"]);
    expect(into("messages")).toEqual([[[0, 2], 1]]);
  });

  it("are looked up once more when others find something meanwhile, and not for ever", async () => {
    const { world, steps, batchOf, run, into } = setUp();
    Object.assign(world, { erased: new Set([1]) });
    world.onSuppresses = async () => {
      world.judgement += 1;
    };
    await run(batchOf(0, 1, 2));
    expect(steps.filter((step) => step.startsWith("suppresses"))).toHaveLength(2);
    expect(into("messages")).toEqual([[[0, 2], 2]]);
  });

  it("are not asked about in a batch without them: it lands at once", async () => {
    const { steps, batchOf, run } = setUp();
    const before = Promise.withResolvers<void>();
    const written = run(batchOf(0), before.promise);
    await expect.poll(() => steps).toContain("insert landing");
    expect(steps).not.toContain("insert record_dates");
    before.resolve();
    await written;
    expect(steps).toContain("insert messages");
    expect(steps.join()).not.toContain("suppresses");
  });

  it("found in the batch before have the batch judged that has landed, and named ones are not written", async () => {
    const { world, steps, batchOf, run, into, linesOf } = setUp();
    const before = Promise.withResolvers<void>();
    const written = run(batchOf(0, 1), before.promise);
    await expect.poll(() => steps).toContain("insert landing");
    Object.assign(world, { judgement: 2, erased: new Set([1]) });
    before.resolve();
    await written;
    expect(into("landing")).toEqual([
      [[0, 1], 1],
      [[0], 2],
    ]);
    expect(into("record_dates")).toEqual([[[0], 2]]);
    expect(await linesOf("conversation_export_ingest_uploads_stamped_anew_total")).toEqual([
      expect.stringMatching(/ 0$/),
    ]);
  });

  it("are asked about again while ClickHouse is away; a bug ends it", async () => {
    const { world, steps, batchOf, run } = setUp();
    world.suspected = new Set([0]);
    let asked = 0;
    world.onSuppresses = () => Promise.reject(++asked === 1 ? new Error("away") : new TypeError("a bug"));
    await expect(run(batchOf(0))).rejects.toThrow("a bug");
    expect(steps).toEqual(["ticket 1", "gap 1", "suppresses 0", "suppresses 0"]);
  });

  it("are given up when its signal aborts", async () => {
    const { world, steps, batchOf, run } = setUp();
    world.suspected = new Set([0]);
    world.onSuppresses = () => new Promise(() => {});
    const stop = new AbortController();
    const written = run(batchOf(0), undefined, stop.signal);
    await expect.poll(() => steps).toContain("suppresses 0");
    stop.abort(new Error("stops"));
    await expect(written).rejects.toThrow("stops");
  });

  it("write nothing that readers see when the batch before was not settled", async () => {
    const { inserts, batchOf, run } = setUp();
    await expect(run(batchOf(0), Promise.reject(new Error("not settled")))).rejects.toThrow("not settled");
    expect(inserts.map(({ table }) => table)).toEqual(["landing"]);
  });
});
