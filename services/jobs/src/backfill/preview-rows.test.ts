import {
  type ExportRecord,
  processEvent,
  type RightRow,
  rightRowsOf,
  type StoredRow,
} from "@conversation-export/domain";
import { expect, it } from "vitest";
import { createPreview, previewOf } from "./preview-rows.ts";

const digestOf = ({ record, table }: RightRow): string => `${table} ${JSON.stringify(record.version)}`;

const conversation = (
  time: string,
  more: { date_created?: string; handoffs?: { id: string; date_created: string }[]; offset?: number } = {},
): ExportRecord => {
  const { offset = 1, ...data } = more;
  const text = JSON.stringify({
    specversion: "1.0",
    id: "e",
    source: "/s",
    type: "conversation.exported",
    time,
    clientid: "acme",
    data: { _id: "c", date_created: "2026-01-01T00:00:00Z", ...data },
  });
  const outcome = processEvent(
    { text, headers: {}, position: { partition: 0, offset } },
    "conversation.exported",
  );
  if (outcome.kind !== "accepted") throw new Error(outcome.reason);
  return outcome.record;
};
const store = (...records: ExportRecord[]): StoredRow[] =>
  records.flatMap((record) =>
    rightRowsOf(record).map((row) => ({ ...row, uploadedAt: 0, digest: digestOf(row) })),
  );
const changesOf = (record: ExportRecord, stored: readonly StoredRow[]): Record<string, boolean> =>
  Object.fromEntries(previewOf(record, stored, digestOf).map(({ table, changes }) => [table, changes]));

const handoffs = [{ id: "h", date_created: "2026-01-01T01:00:00Z" }];
const [older, newer] = [
  conversation("2026-02-01T00:00:00Z", { handoffs }),
  conversation("2026-03-01T00:00:00Z"),
];
const ALL = { handoffs: true, conversation_updates: true, conversations: true };
const NONE = { handoffs: false, conversation_updates: false, conversations: false };

it("changes everything where nothing stands, and nothing where it stands as it is", () => {
  expect(changesOf(older, [])).toEqual(ALL);
  expect(changesOf(older, store(older))).toEqual(NONE);
});

it("changes a row of the same version that says something else, by the last that was inserted", () => {
  const wrong = store(older).map((row) => ({ ...row, digest: "other" }));
  expect(changesOf(older, wrong)).toEqual(ALL);
  expect(changesOf(older, [...wrong, ...store(older)])).toEqual(NONE);
  expect(changesOf(older, [...store(older), ...wrong])).toEqual(ALL);
});

it("is behind a newer export, whose update index needs no older entry, but not with its handoffs", () => {
  expect(changesOf(older, store(newer))).toEqual({ ...NONE, handoffs: true });
  expect(changesOf(newer, store(older))).toEqual({ conversation_updates: true, conversations: true });
  const sameAttempt = conversation("2026-03-01T00:00:00Z", { handoffs });
  expect(changesOf(older, store(sameAttempt))).toEqual(NONE);
  const laterAttempt = conversation("2026-01-15T00:00:00Z", {
    handoffs: [{ id: "h", date_created: "2026-01-01T02:00:00Z" }],
  });
  expect(changesOf(older, store(laterAttempt))).toEqual({ ...ALL, handoffs: false });
});

it("is behind a newer export that stands under another date of creation", () => {
  const corrected = conversation("2026-03-01T00:00:00Z", { date_created: "2026-01-02T00:00:00Z", handoffs });
  expect(changesOf(older, store(corrected))).toEqual(NONE);
  expect(changesOf(corrected, store(older))).toMatchObject({ conversations: true, handoffs: true });
});

it.each([true, false])("forgets the ids that it has noted, also when it fails: %s", async (fails) => {
  const noted = new Set<string>();
  const preview = createPreview({
    reader: {
      note: (run) => {
        noted.add(run);
        return Promise.resolve();
      },
      stored: () => (fails ? Promise.reject(new Error("away")) : Promise.resolve(new Map())),
      forget: (run) => {
        noted.delete(run);
        return Promise.resolve();
      },
    },
    newRun: () => "run",
  });
  const [rows] = await preview([older], new AbortController().signal).catch(() => []);
  expect(rows?.length).toBe(fails ? undefined : 3);
  expect(noted).toEqual(new Set());
});
