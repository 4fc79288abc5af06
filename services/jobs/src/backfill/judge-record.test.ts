import {
  END_OF_TIME,
  type ExportRecord,
  processEvent,
  rightRowsOf,
  type StoredRow,
  versionNumber,
} from "@conversation-export/domain";
import { type LandedEvent, type LandingCoverage, rowDigest } from "@conversation-export/warehouse";
import fc from "fast-check";
import { expect, it } from "vitest";
import { addUp, emptyCounts } from "./backfill-counts.ts";
import { judgeRecord, newPlan } from "./judge-record.ts";

const SINCE = Date.parse("2026-02-01T00:00:00Z") * 1_000;
const AS_OF = SINCE + 1_000_000;
const COVERAGE: LandingCoverage = { since: SINCE, asOf: AS_OF };
const isoOf = (micros: number): string => new Date(micros / 1_000).toISOString();

const landed = (offset: number, created: number, value?: string): LandedEvent => ({
  topic: "messages",
  partition: 0,
  offset,
  type: "message.exported",
  clientId: "acme",
  recordId: "m",
  hash: "1",
  dateCreated: created,
  uploadedAt: SINCE,
  headers: {},
  text:
    value ??
    JSON.stringify({
      specversion: "1.0",
      id: `e${offset}`,
      source: "/s",
      type: "message.exported",
      time: isoOf(SINCE + offset * 1_000),
      clientid: "acme",
      data: { _id: "m", conversation_id: "c", date_created: isoOf(created) },
    }),
});
const exportOf = ({ offset, text, headers }: LandedEvent): ExportRecord => {
  const outcome = processEvent({ text, headers, position: { partition: 0, offset } }, "message.exported");
  if (outcome.kind !== "accepted") throw new Error(outcome.reason);
  return outcome.record;
};
/** A wrong row has an export an hour later. */
const rowsOf = (record: ExportRecord, uploadedAt: number, isWrong = false): StoredRow[] => {
  const { exportedAt } = record.version;
  const version = { ...record.version, exportedAt: exportedAt + (isWrong ? 3_600_000_000 : 0) };
  return rightRowsOf({ ...record, version }).map((row) => ({ ...row, uploadedAt, digest: rowDigest(row) }));
};
const judge = async (
  events: readonly LandedEvent[],
  stored: readonly StoredRow[],
  coverage: LandingCoverage | null = COVERAGE,
) => {
  const counts = emptyCounts();
  const plan = newPlan("message.exported");
  const suppressed = async (records: readonly ExportRecord[]) => records.map(() => false);
  await judgeRecord(plan, events, stored, counts, { suppressed, coverage, stableUpTo: END_OF_TIME });
  return { plan, counts };
};

it("deletes a wrong row only if landing has its event and covers its upload and the record's creation", () => {
  const near = (instant: number) => fc.integer({ min: -2, max: 2 }).map((by) => instant + by * 1_000);
  return fc.assert(
    fc.asyncProperty(
      near(SINCE),
      fc.oneof(near(SINCE), near(AS_OF)),
      fc.boolean(),
      fc.oneof({ weight: 9, arbitrary: fc.constant(COVERAGE) }, fc.constant(null)),
      async (created, uploadedAt, isEventThere, coverage) => {
        const event = landed(1, created);
        const wrong = rowsOf(exportOf(landed(isEventThere ? 1 : 2, created)), uploadedAt, true);
        const { plan, counts } = await judge(
          [event],
          [...rowsOf(exportOf(event), SINCE), ...wrong],
          coverage,
        );
        const isDeletable =
          coverage !== null && isEventThere && created >= SINCE && uploadedAt >= SINCE && uploadedAt <= AS_OF;
        expect(plan.remove.map(({ row }) => row.version)).toEqual(isDeletable ? [wrong[0]?.version] : []);
        expect(counts.rows.undeletable.messages).toBe(isDeletable ? 0 : 1);
      },
    ),
    { numRuns: 400 },
  );
});

it("goes by the earliest of the record's dates of creation", async () => {
  const events = [landed(1, SINCE - 1_000), landed(2, SINCE + 1_000)];
  const [first, second] = events.map(exportOf) as [ExportRecord, ExportRecord];
  const stored = [...rowsOf(first, SINCE), ...rowsOf(second, SINCE), ...rowsOf(second, SINCE, true)];
  const { plan, counts } = await judge(events, stored);
  expect(plan.remove).toEqual([]);
  expect(counts.rows.undeletable.messages).toBe(1);
});

it("takes a rejected event for absent, and says which it is", async () => {
  const [good, bad] = [landed(1, SINCE), landed(2, SINCE, "{}")];
  const rejected = exportOf(landed(2, SINCE));
  const stored = [...rowsOf(exportOf(good), SINCE), ...rowsOf(rejected, SINCE)];
  const { plan, counts } = await judge([good, bad], stored);
  expect(plan.remove.map(({ row }) => row.version)).toEqual([versionNumber(rejected.version)]);
  expect(counts.events).toMatchObject({ read: 2, rejected: 1 });
  expect(counts.problems).toMatchObject([{ place: "messages/0/2" }]);
  expect((await judge([bad], rowsOf(rejected, SINCE))).plan.remove).toHaveLength(1);
});

it("names the first 20 events that were not used", async () => {
  const events = Array.from({ length: 25 }, (_, at) => landed(at, SINCE, "{}"));
  const { counts } = await judge(events, []);
  const all = addUp([counts, counts]);
  expect(all.events.rejected).toBe(50);
  expect(all.problems.map(({ place }) => place)).toEqual(
    events.slice(0, 20).map(({ offset }) => `messages/0/${offset}`),
  );
});
