import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { HandoffEntry } from "../kinds/handoffs.ts";
import type { ExportRecord } from "../kinds/export-record.ts";
import { handoffVersion, type RightRow, type RowKey, type StoredRow, versionNumber } from "./record-rows.ts";
import { type Correction, correctionOf } from "./row-correction.ts";

type Attempt = { readonly target: string; readonly at: number; readonly name: string };
type Facts = {
  readonly time: number;
  readonly created: number;
  readonly updated: number;
  readonly text: string;
  readonly attempts: readonly Attempt[];
};

const entryOf = ({ target, at, name }: Attempt): HandoffEntry => ({
  target,
  targetKind: "handoff_id",
  dateCreated: at,
  name,
  outcomeStatus: null,
  reasonCode: null,
  entry: JSON.stringify({ target, at, name }),
});

const conversationOf = (facts: Facts, offset: number): ExportRecord => {
  const attempts = new Map<string, Attempt>();
  for (const attempt of facts.attempts) attempts.set(attempt.target, attempt);
  return {
    type: "conversation.exported",
    clientId: "acme",
    id: "c1",
    dateCreated: facts.created,
    dateUpdated: facts.updated,
    version: { exportedAt: facts.time, partition: 0, offset },
    beforeUpload: facts.text,
    afterUpload: "",
    tail: "",
    handoffs: [...attempts.values()].map(entryOf),
    conversationId: "c1",
    columns: [],
  };
};

const messageOf = (facts: Facts, offset: number): ExportRecord => ({
  type: "message.exported",
  clientId: "acme",
  id: "m1",
  conversationId: facts.text,
  dateCreated: facts.created,
  version: { exportedAt: facts.time, partition: 0, offset },
  beforeUpload: facts.text,
  afterUpload: "",
  dateUpdated: facts.created,
  handoffs: [],
  tail: "",
  columns: [],
});

const digestOf = ({ table, record, entry }: RightRow): string => {
  if (table === "handoffs") return entry?.entry ?? "";
  if (record.type !== "conversation.exported") return JSON.stringify(record);
  const date = table === "conversation_updates" ? record.dateCreated : record.dateUpdated;
  return `${date} ${record.beforeUpload}`;
};

/** Independent of the code under test. */
const written = (record: ExportRecord): StoredRow[] => {
  const version = versionNumber(record.version);
  const row = (key: Omit<RowKey, "version">, of: bigint, entry: HandoffEntry | null): StoredRow => {
    const right: RightRow = { ...key, version: of, record, entry };
    const { record: _record, entry: _entry, ...rest } = { ...right, uploadedAt: 10, digest: digestOf(right) };
    return rest;
  };
  const none = { target: "", targetKind: 0 } as const;
  if (record.type === "message.exported") {
    return [row({ ...none, table: "messages", date: record.dateCreated }, version, null)];
  }
  if (record.type !== "conversation.exported")
    return [row({ ...none, table: "end_users", date: 0 }, version, null)];
  return [
    ...record.handoffs.map((entry) =>
      row(
        { table: "handoffs", date: record.dateCreated, target: entry.target, targetKind: 1 },
        handoffVersion(entry, version),
        entry,
      ),
    ),
    row({ ...none, table: "conversation_updates", date: record.dateUpdated }, version, null),
    row({ ...none, table: "conversations", date: record.dateCreated }, version, null),
  ];
};

const sortingKey = (row: StoredRow): string =>
  `${row.table}/${row.date}/${row.target}/${row.table === "conversation_updates" ? row.version : ""}`;

/** As ReplacingMergeTree. */
const final = (rows: readonly StoredRow[]): Map<string, StoredRow> => {
  const winners = new Map<string, StoredRow>();
  for (const row of rows) {
    const known = winners.get(sortingKey(row));
    if (known === undefined || row.version >= known.version) winners.set(sortingKey(row), row);
  }
  return winners;
};

const shown = (rows: readonly StoredRow[]): unknown => {
  const all = [...final(rows).values()].sort((a, b) => (a.version < b.version ? -1 : 1));
  const live = all.findLast(({ table }) => table === "conversations" || table === "messages");
  const attempts = all.filter(({ table }) => table === "handoffs");
  const entries = all.filter((row) => row.table === "conversation_updates" && row.version === live?.version);
  return {
    live: live && { date: live.date, digest: live.digest, version: live.version },
    handoffs: Object.fromEntries(attempts.map(({ target, digest }) => [target, digest])),
    updates: entries.map((row) => `${row.date} ${row.digest}`),
  };
};

const present = (rows: readonly StoredRow[]): unknown[] =>
  [...final(rows).values()]
    .filter(({ table }) => table !== "conversation_updates")
    .map((row) => `${sortingKey(row)} ${row.version} ${row.digest}`)
    .sort();

const apply = (rows: readonly StoredRow[], correction: Correction): StoredRow[] => {
  const gone = new Set(
    correction.remove.map((row) => `${row.table}/${row.date}/${row.target}/${row.version}`),
  );
  const isGone = (row: RowKey): boolean => gone.has(`${row.table}/${row.date}/${row.target}/${row.version}`);
  // A right row with a deleted one's key and version would go too.
  for (const row of correction.insert) expect(isGone(row)).toBe(false);
  const inserted = correction.insert.map((right): StoredRow => {
    const { record: _record, entry: _entry, ...key } = right;
    return { ...key, uploadedAt: 20, digest: digestOf(right) };
  });
  const kept = [...final(rows).values()].filter((row) => !isGone(row));
  // A merge may drop the right row before the wrong one is gone.
  const swallowed = final([...rows, ...inserted.filter((row) => !correction.outranked.has(row.table))]);
  for (const row of inserted) {
    if (correction.outranked.has(row.table)) continue;
    expect(swallowed.get(sortingKey(row))?.version).toBe(row.version);
  }
  return [...kept, ...inserted];
};

const correct = (
  exports: readonly ExportRecord[],
  stored: readonly StoredRow[],
  isDeletable: (row: StoredRow) => boolean = () => true,
  isOnItsWay: (version: bigint) => boolean = () => false,
): Correction => correctionOf({ exports, stored, untouchable: new Set(), isDeletable, isOnItsWay, digestOf });

const NOTHING: Correction = { insert: [], remove: [], undeletable: [], outranked: new Set() };

const attempt: fc.Arbitrary<Attempt> = fc.record({
  target: fc.constantFrom("h1", "h2", "h3"),
  at: fc.integer({ min: 1_000, max: 1_003 }),
  name: fc.constantFrom("a", "b"),
});
const facts = (created: fc.Arbitrary<number>): fc.Arbitrary<Facts> =>
  fc.record({
    time: fc.integer({ min: 5_000, max: 5_004 }),
    created,
    updated: fc.integer({ min: 2_000, max: 2_003 }),
    text: fc.constantFrom("x", "y"),
    attempts: fc.array(attempt, { maxLength: 3 }),
  });

type Bug = (facts: Facts) => Facts;
const BUGS: Readonly<Record<string, Bug>> = {
  created: (one) => ({ ...one, created: one.created + 7 }),
  updated: (one) => ({ ...one, updated: one.updated - 7 }),
  "exported later": (one) => ({ ...one, time: one.time + 100 }),
  "exported earlier": (one) => ({ ...one, time: one.time - 100 }),
  text: (one) => ({ ...one, text: `${one.text}!` }),
  target: (one) => ({ ...one, attempts: one.attempts.map((a) => ({ ...a, target: `${a.target}?` })) }),
  "handoff later": (one) => ({ ...one, attempts: one.attempts.map((a) => ({ ...a, at: a.at + 50 })) }),
  "handoff earlier": (one) => ({ ...one, attempts: one.attempts.map((a) => ({ ...a, at: a.at - 50 })) }),
  "handoff name": (one) => ({ ...one, attempts: one.attempts.map((a) => ({ ...a, name: "?" })) }),
};

type Case = {
  readonly exports: readonly Facts[];
  readonly bugs: readonly string[];
  readonly harmed: readonly boolean[];
  readonly order: readonly number[];
  readonly merged: boolean;
  readonly again: readonly boolean[];
};
const cases = (created: fc.Arbitrary<number>): fc.Arbitrary<Case> =>
  fc.record({
    exports: fc.array(facts(created), { minLength: 1, maxLength: 5 }),
    bugs: fc.uniqueArray(fc.constantFrom(...Object.keys(BUGS)), { maxLength: 3 }),
    harmed: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    order: fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
    merged: fc.boolean(),
    again: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
  });

type Maker = (facts: Facts, offset: number) => ExportRecord;

function storedOf(one: Case, make: Maker): { exports: ExportRecord[]; stored: StoredRow[] } {
  const exports = one.exports.map(make);
  const ingested = one.exports.map((given, index) => {
    const distort = one.bugs.map((name) => BUGS[name] as Bug);
    const facts = one.harmed[index] === true ? distort.reduce((f, bug) => bug(f), given) : given;
    return { rows: written(make(facts, index)), order: one.order[index] ?? 0 };
  });
  let stored = ingested.sort((a, b) => a.order - b.order).flatMap(({ rows }) => rows);
  // A replay repeats part of it without the bugs.
  stored = [...stored, ...exports.filter((_, index) => one.again[index]).flatMap(written)];
  if (one.merged) stored = [...final(stored).values()];
  return { exports, stored };
}

describe.each([
  ["conversation", conversationOf],
  ["message", messageOf],
] as const)("a %s written by code with bugs", (_name, make: Maker) => {
  test("is shown as if it had been written without them, and a second correction is empty", () => {
    fc.assert(
      fc.property(cases(fc.integer({ min: 500, max: 502 })), (one) => {
        const { exports, stored } = storedOf(one, make);
        const corrected = apply(stored, correct(exports, stored));
        expect(shown(corrected)).toEqual(shown(exports.flatMap(written)));
        expect(present(corrected)).toEqual(present(exports.flatMap(written)));
        expect(correct(exports, corrected)).toEqual(NOTHING);
        expect(correct(exports, [...final(corrected).values()])).toEqual(NOTHING);
      }),
      { numRuns: 2_000 },
    );
  });

  test("is written again where a row says so, whatever it holds", () => {
    fc.assert(
      fc.property(cases(fc.integer({ min: 500, max: 502 })), fc.func(fc.boolean()), (one, isMarked) => {
        const { exports, stored } = storedOf({ ...one, bugs: [] }, make);
        const winners = new Set(final(stored).values());
        const isLeft = (row: StoredRow): boolean =>
          winners.has(row) && row.table !== "conversation_updates" && isMarked(sortingKey(row));
        const marked = stored.map((row) => (isLeft(row) ? { ...row, digest: "" } : row));
        const correction = correct(exports, marked);
        expect(correction.remove).toEqual([]);
        expect(correction.insert).toHaveLength(stored.filter(isLeft).length);
        expect(correct(exports, apply(marked, correction))).toEqual(NOTHING);
      }),
      { numRuns: 500 },
    );
  });

  test("is not touched where it is right", () => {
    fc.assert(
      fc.property(cases(fc.integer({ min: 500, max: 502 })), (one) => {
        const { exports, stored } = storedOf({ ...one, bugs: [] }, make);
        expect(correct(exports, stored)).toEqual(NOTHING);
      }),
      { numRuns: 500 },
    );
  });

  test("loses nothing that may not be deleted", () => {
    fc.assert(
      fc.property(cases(fc.constant(500)), (one) => {
        const { exports, stored } = storedOf(one, make);
        const correction = correct(exports, stored, () => false);
        expect(correction.remove).toEqual([]);
        const corrected = apply(stored, correction);
        expect(correct(exports, corrected, () => false).insert).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

const at = (facts: Partial<Facts>): Facts => ({
  time: 5_000,
  created: 500,
  updated: 2_000,
  text: "x",
  attempts: [],
  ...facts,
});

describe("rows that no export of the landing table explains", () => {
  const landed = conversationOf(at({ time: 5_001 }), 1);

  test("are left alone when they are superseded and may not be deleted", () => {
    const older = conversationOf(at({ time: 4_000, text: "older" }), 0);
    const stored = [...written(older), ...written(landed)];
    const correction = correct([landed], stored, () => false);
    expect(correction).toEqual(NOTHING);
  });

  test("are reported when readers see them", () => {
    const newer = conversationOf(at({ time: 6_000, text: "newer" }), 9);
    const correction = correct([landed], [...written(landed), ...written(newer)], () => false);
    expect(correction.undeletable.map(({ table }) => table)).toContain("conversations");
    expect(correction.insert).toEqual([]);
  });

  test("are none of its business when their export is suppressed", () => {
    const other = conversationOf(at({ time: 6_000, attempts: [{ target: "h1", at: 1, name: "a" }] }), 9);
    const stored = [...written(landed), ...written(other)];
    const untouchable = new Set([versionNumber(other.version)]);
    const known = {
      exports: [landed],
      stored,
      untouchable,
      isDeletable: () => true,
      isOnItsWay: () => false,
      digestOf,
    };
    expect(correctionOf(known)).toEqual(NOTHING);
  });

  test("go when the record has no accepted export at all and they may be deleted", () => {
    const stored = written(landed);
    expect(correct([], stored).remove).toHaveLength(stored.length);
    expect(correct([], stored, () => false).remove).toEqual([]);
  });
});
