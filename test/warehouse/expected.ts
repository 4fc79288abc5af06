import type { ExportRecord, HandoffEntry } from "@conversation-export/domain";
import { publicText } from "./records.ts";
import { compareUtf8 } from "../reference/order.ts";

function isLater(a: ExportRecord, b: ExportRecord): boolean {
  const x = a.version;
  const y = b.version;
  if (x.exportedAt !== y.exportedAt) return x.exportedAt > y.exportedAt;
  if (x.partition !== y.partition) return x.partition > y.partition;
  return x.offset >= y.offset;
}

export type Arrival<R extends ExportRecord> = { readonly record: R; readonly uploadedAt: number };
export type Expected<R> = {
  readonly id: string;
  readonly date: number;
  readonly text: string;
  readonly record: R;
};

/** In order of arrival; of equal versions the later arrival wins. */
function latestOf<R extends ExportRecord>(
  arrivals: readonly Arrival<R>[],
  client: string,
): Map<string, Arrival<R>> {
  const latest = new Map<string, Arrival<R>>();
  for (const arrival of arrivals) {
    if (arrival.record.clientId !== client) continue;
    const seen = latest.get(arrival.record.id);
    if (seen === undefined || isLater(arrival.record, seen.record)) latest.set(arrival.record.id, arrival);
  }
  return latest;
}

/** Rule 5 of the specification, by trying all entries against all. */
function mergedHandoffs(arrivals: readonly Arrival<ExportRecord>[], client: string, id: string): string[] {
  const winners = new Map<string, { entry: HandoffEntry; record: ExportRecord }>();
  for (const { record } of arrivals) {
    if (record.clientId !== client || record.id !== id) continue;
    for (const entry of record.handoffs) {
      const key = JSON.stringify([entry.targetKind, entry.target]);
      const seen = winners.get(key);
      if (
        seen === undefined ||
        entry.dateCreated > seen.entry.dateCreated ||
        (entry.dateCreated === seen.entry.dateCreated && isLater(record, seen.record))
      ) {
        winners.set(key, { entry, record });
      }
    }
  }
  const latest = [...winners.values()].map(({ entry }) => entry).filter(({ entry }) => entry !== "");
  const unnamed = new Set(latest.flatMap((one) => (one.targetKind === "id" ? [one.target] : [])));
  const attemptOf = ({ entry }: HandoffEntry): string => (JSON.parse(entry) as { id: string }).id;
  return latest
    .filter((one) => one.targetKind === "id" || !unnamed.has(attemptOf(one)))
    .sort(
      (a, b) =>
        a.dateCreated - b.dateCreated ||
        compareUtf8(a.target, b.target) ||
        (a.targetKind === "handoff_id" ? -1 : 1),
    )
    .map(({ entry }) => entry);
}

function inWindow<R>(expected: Expected<R>[], since: number, to: number): Expected<R>[] {
  return expected
    .filter(({ date }) => date >= since && date < to)
    .sort((a, b) => a.date - b.date || compareUtf8(a.id, b.id));
}

export function expectConversations(
  arrivals: readonly Arrival<ExportRecord>[],
  window: { client: string; by: "dateCreated" | "dateUpdated"; since: number; to: number },
): Expected<ExportRecord>[] {
  const expected = [...latestOf(arrivals, window.client).values()].map(({ record, uploadedAt }) => {
    const handoffs = mergedHandoffs(arrivals, window.client, record.id);
    const text = publicText(record, uploadedAt, handoffs);
    return { id: record.id, date: record[window.by], text, record };
  });
  return inWindow(expected, window.since, window.to);
}

export function expectMessages(
  arrivals: readonly Arrival<ExportRecord>[],
  window: { client: string; since: number; to: number; conversationId?: string },
): Expected<ExportRecord>[] {
  const expected = [...latestOf(arrivals, window.client).values()]
    .filter(
      ({ record }) => window.conversationId === undefined || record.conversationId === window.conversationId,
    )
    .map(({ record, uploadedAt }) => ({
      id: record.id,
      date: record.dateCreated,
      text: publicText(record, uploadedAt),
      record,
    }));
  return inWindow(expected, window.since, window.to);
}

export function expectPages(
  dates: readonly number[],
  pageSize: number,
  wholeTies: boolean,
  extension = 10_000,
): number[] {
  const pages: number[] = [];
  let at = 0;
  while (at < dates.length) {
    let end = Math.min(at + pageSize, dates.length);
    if (wholeTies && end < dates.length && dates[end] === dates[end - 1]) {
      const tie = dates[end];
      const start = dates.indexOf(tie as number, at);
      if (start > at) end = start;
      else while (end < dates.length && dates[end] === tie && end - at < pageSize + extension) end += 1;
    }
    pages.push(end - at);
    at = end;
  }
  return pages;
}
