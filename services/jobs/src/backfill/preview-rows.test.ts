import { type ExportRecord, processEvent, rightRowsOf, type StoredRow } from "@conversation-export/domain";
import { rowDigest } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createPreview } from "./preview-rows.ts";

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
    rightRowsOf(record).map((row) => ({ ...row, uploadedAt: 0, digest: rowDigest(row) })),
  );
const lacking = async (record: ExportRecord, stored: readonly StoredRow[]): Promise<string[]> => {
  const preview = createPreview({ reader: { stored: () => Promise.resolve([stored]) } });
  const [rows = []] = await preview([record], new AbortController().signal);
  return rows.map(({ table }) => table).toSorted();
};

const handoffs = [{ id: "h", date_created: "2026-01-01T01:00:00Z" }];
const [older, newer] = [
  conversation("2026-02-01T00:00:00Z", { handoffs }),
  conversation("2026-03-01T00:00:00Z"),
];
const ALL = ["conversation_updates", "conversations", "handoffs"];

it("lacks everything where nothing stands, and nothing where it stands as it is", async () => {
  expect(await lacking(older, [])).toEqual(ALL);
  expect(await lacking(older, store(older))).toEqual([]);
});

it("lacks a row of which the same version says something else, by the last that was inserted", async () => {
  const wrong = store(older).map((row) => ({ ...row, digest: "other" }));
  expect(await lacking(older, wrong)).toEqual(ALL);
  expect(await lacking(older, [...wrong, ...store(older)])).toEqual([]);
  expect(await lacking(older, [...store(older), ...wrong])).toEqual(ALL);
});

it("is behind a newer export, whose update index needs no older entry, but not with its handoffs", async () => {
  expect(await lacking(older, store(newer))).toEqual(["handoffs"]);
  expect(await lacking(newer, store(older))).toEqual(["conversation_updates", "conversations"]);
  const sameAttempt = conversation("2026-03-01T00:00:00Z", { handoffs });
  expect(await lacking(older, store(sameAttempt))).toEqual([]);
  const laterAttempt = conversation("2026-01-15T00:00:00Z", {
    handoffs: [{ id: "h", date_created: "2026-01-01T02:00:00Z" }],
  });
  expect(await lacking(older, store(laterAttempt))).toEqual(["conversation_updates", "conversations"]);
});

it("needs no entry in the update index beside a newer export under another date of creation", async () => {
  const corrected = conversation("2026-03-01T00:00:00Z", { date_created: "2026-01-02T00:00:00Z", handoffs });
  expect(await lacking(older, store(corrected))).toEqual(["conversations", "handoffs"]);
  expect(await lacking(older, [...store(older), ...store(corrected)])).toEqual([]);
  const compacted = store(older).filter(({ table }) => table !== "conversation_updates");
  expect(await lacking(older, [...compacted, ...store(corrected)])).toEqual([]);
  expect(await lacking(corrected, store(older))).toEqual(ALL);
});
