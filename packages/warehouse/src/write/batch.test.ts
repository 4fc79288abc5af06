import { type EventType, type ExportRecord, parseTimestamp, processEvent } from "@conversation-export/domain";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Batch, createBatch, type TableInsert } from "./batch.ts";

function recordOf(type: EventType, data: Record<string, unknown>, offset: number): ExportRecord {
  const text = JSON.stringify({
    specversion: "1.0",
    id: "e",
    source: "s",
    type,
    time: "2026-10-05T00:00:00Z",
    clientid: "acme",
    data,
  });
  const outcome = processEvent({ text, headers: {}, position: { partition: 0, offset } }, type);
  if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome.record;
}

const DATA: Readonly<Record<EventType, (index: number, handoffs: number) => Record<string, unknown>>> = {
  "conversation.exported": (index, handoffs) => ({
    _id: `c${index}`,
    date_created: "2026-10-04T00:00:00Z",
    inquiry_summary: "é".repeat(index * 7),
    handoffs: Array.from({ length: handoffs }, (_, n) => ({
      id: `${n}`,
      date_created: "2026-10-04T00:00:00Z",
    })),
  }),
  "message.exported": (index) => ({
    _id: `m${index}`,
    conversation_id: "c",
    date_created: "2026-10-04T00:00:00Z",
  }),
  "end_user.exported": (index) => ({
    end_user_id: `u${index}`,
    created_at: "2026-10-04T00:00:00Z",
    profile: { system_properties: { a: "x", b: index } },
  }),
};

const types = fc.constantFrom<EventType[]>("conversation.exported", "message.exported", "end_user.exported");

function batchOf(
  type: EventType,
  handoffs: readonly number[],
  initialBytes: number,
  landingDays?: number,
): Batch {
  const batch = createBatch(type, initialBytes, { landingDays });
  for (const [index, count] of handoffs.entries()) {
    batch.add(recordOf(type, DATA[type](index, count), index), {
      topic: "a-topic",
      partition: 3,
      offset: index,
      key: Buffer.from(`key-${index}`),
      value: Buffer.from(`value-${index}`),
      headers: { trace: "t", both: ["a", Buffer.from("b")], none: null },
      timestamp: 1_790_000_000_000,
    });
  }
  return batch;
}

function bodies(inserts: readonly TableInsert[]): Map<string, { body: string; rows: number }> {
  const joined = new Map<string, { body: string; rows: number }>();
  for (const { table, body, rows } of inserts) {
    const known = joined.get(table) ?? { body: "", rows: 0 };
    joined.set(table, { body: known.body + body.toString("hex"), rows: known.rows + rows });
  }
  return joined;
}

describe("createBatch", () => {
  it("gives the same rows in any split as in one piece", () => {
    const handoffs = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 12 });
    const cuts = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 5 });
    fc.assert(
      fc.property(
        types,
        handoffs,
        cuts,
        fc.integer({ min: 1, max: 5000 }),
        fc.constantFrom(undefined, 14),
        (type, handoffs, cuts, initialBytes, landingDays) => {
          const batch = batchOf(type, handoffs, initialBytes, landingDays);
          batch.fillUpload(1_791_072_000_000_000);
          const whole = bodies(batch.inserts(0, batch.records()));
          const ends = [...cuts.filter((cut) => cut <= batch.records()), batch.records()].sort(
            (a, b) => a - b,
          );
          const pieces = ends.flatMap((end, index) => batch.inserts(ends[index - 1] ?? 0, end));
          expect(bodies(pieces)).toEqual(whole);
          for (const { rows } of pieces) expect(rows).toBeGreaterThan(0);
          expect(batch.bytes()).toBe([...whole.values()].reduce((sum, { body }) => sum + body.length / 2, 0));
          expect(batch.records()).toBe(handoffs.length);
        },
      ),
    );
  });

  it("gives dates and changes first, then the handoffs, and the record's own table last", () => {
    const tables = (type: EventType) =>
      batchOf(type, [1], 1)
        .inserts(0, 1)
        .map(({ table }) => table);
    expect(tables("conversation.exported")).toEqual([
      "record_dates",
      "changes",
      "handoffs",
      "conversation_updates",
      "conversations",
    ]);
    expect(tables("message.exported")).toEqual(["record_dates", "changes", "messages"]);
    expect(tables("end_user.exported")).toEqual(["changes", "end_users"]);
  });

  it("inserts nothing for no records, and no handoffs for records without", () => {
    expect(createBatch("conversation.exported", 1).inserts(0, 0)).toEqual([]);
    const batch = batchOf("conversation.exported", [0, 2, 0], 1);
    expect(batch.inserts(0, 1).map(({ table }) => table)).toEqual([
      "record_dates",
      "changes",
      "conversation_updates",
      "conversations",
    ]);
    expect(batch.inserts(1, 2).map(({ rows }) => rows)).toEqual([1, 1, 2, 1, 1]);
    expect(batch.inserts(2, 2)).toEqual([]);
  });

  it("gives each record's client, name and date", () => {
    const micros = Buffer.alloc(8);
    micros.writeBigUInt64LE(BigInt(parseTimestamp("2026-10-04T00:00:00Z") ?? 0));
    for (const [type, name] of [
      ["conversation.exported", "4/acme/c/c1"],
      ["message.exported", "4/acme/m/m1"],
    ] as const) {
      const [dates] = batchOf(type, [0, 1], 1).inserts(1, 2);
      expect(dates).toMatchObject({ table: "record_dates", rows: 1 });
      expect(dates?.columns).toEqual(["client_id", "record", "date_created"]);
      const texts = [Buffer.from("\x04acme"), Buffer.from([name.length]), Buffer.from(name)];
      expect(dates?.body).toEqual(Buffer.concat([...texts, micros]));
    }
  });

  it("puts the last stamp into every row that has one", () => {
    for (const type of ["conversation.exported", "message.exported"] as const) {
      const batch = batchOf(type, [1, 2], 1);
      const unfilled = bodies(batch.inserts(0, 2));
      batch.fillUpload(0);
      batch.fillUpload(1_791_072_000_123_456);
      const filled = batch.inserts(0, 2);
      const stamps = filled.map(
        ({ body }) => body.toString("latin1").split("2026-10-04T00:00:00.123456+00:00").length - 1,
      );
      expect(stamps).toEqual(type === "message.exported" ? [0, 0, 2] : [0, 0, 0, 0, 2]);
      const ticks = Buffer.alloc(8);
      ticks.writeBigUInt64LE(1_791_072_000_123_456n);
      for (const { table, body, rows } of filled) {
        const expected = { record_dates: 0, changes: 1 }[table] ?? rows;
        expect(body.toString("hex").split(ticks.toString("hex")).length - 1, table).toBe(expected);
        expect(body).toHaveLength((unfilled.get(table)?.body.length ?? 0) / 2);
      }
    }
  });

  it("inserts events as received before all rows, with the day on which they expire", () => {
    const expectedDays = [
      ["2026-10-03T23:59:59.999999Z", "2026-10-18"],
      ["2026-10-04T00:00:00Z", "2026-10-19"],
    ] as const;
    const batch = batchOf("conversation.exported", [1, 0, 1], 1, 14);
    expect(batch.inserts(0, 3).map(({ table, rows }) => [table, rows])).toEqual([
      ["landing", 3],
      ["record_dates", 3],
      ["changes", 3],
      ["handoffs", 2],
      ["conversation_updates", 3],
      ["conversations", 3],
    ]);
    for (const [instant, expiry] of expectedDays) {
      const micros = parseTimestamp(instant) ?? 0;
      batch.fillUpload(micros);
      const [landing] = batch.inserts(1, 2);
      const end = Buffer.alloc(10);
      end.writeBigUInt64LE(BigInt(micros));
      end.writeUInt16LE(Date.parse(expiry) / 86_400_000, 8);
      expect(landing?.body.subarray(-10)).toEqual(end);
      expect(landing?.body.includes("value-1")).toBe(true);
      expect(landing?.body.includes("value-2")).toBe(false);
    }
  });

  it("contains no earlier event when its memory is reused", () => {
    const batch = batchOf("message.exported", [0, 0], 1, 14);
    batch.clear();
    expect([batch.records(), batch.inserts(0, 2), batch.bytes()]).toEqual([0, [], 0]);
    const record = recordOf("message.exported", DATA["message.exported"](0, 0), 0);
    expect(() => batch.add(record)).toThrow(TypeError);
  });

  it("refuses a record of another type", () => {
    const record = recordOf("message.exported", DATA["message.exported"](0, 0), 0);
    expect(() => createBatch("conversation.exported", 1).add(record)).toThrow(TypeError);
    expect(() => createBatch("end_user.exported", 1).add(record)).toThrow(TypeError);
  });
});
