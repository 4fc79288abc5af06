import { createHash } from "node:crypto";
import { type Exact, isList, isObject, member, parseExact, printExact } from "./exact-json.ts";
import type { ExpectedRecord, ExpectedRecords } from "./fold.ts";
import { compareUtf8 } from "./order.ts";

export type ExportedRecord = { readonly id: string; readonly json: string };

function normalise(record: Exact): ExportedRecord {
  if (!isObject(record)) throw new TypeError("an exported record must be a JSON object");
  const id = member(record, "_id") ?? member(record, "end_user_id");
  if (typeof id !== "string") throw new TypeError("an exported record must have an id");
  const members = record.members.filter(([name]) => name !== "record_last_updated");
  return { id, json: printExact({ kind: "object", members }) };
}

/** Exact, without white space and `record_last_updated`. */
export function normaliseExported(recordText: string): ExportedRecord {
  return normalise(parseExact(recordText));
}

export function normalisePage(pageText: string): ExportedRecord[] {
  const page = parseExact(pageText);
  const data = isObject(page) ? member(page, "data") : undefined;
  if (!isList(data)) throw new TypeError("a page must have a data array");
  return data.map(normalise);
}

export function pickFields(recordText: string, names: readonly string[]): string {
  const record = parseExact(recordText);
  if (!isObject(record)) throw new TypeError("a record must be a JSON object");
  const members = record.members.filter(([name]) => names.includes(name));
  return printExact({ kind: "object", members });
}

function window(
  expected: ExpectedRecords,
  client: string,
  dateOf: (record: ExpectedRecord) => bigint,
  since: bigint,
  to: bigint,
): ExpectedRecord[] {
  return [...(expected.get(client)?.values() ?? [])]
    .filter((record) => dateOf(record) >= since && dateOf(record) < to)
    .sort((a, b) => {
      if (dateOf(a) !== dateOf(b)) return dateOf(a) < dateOf(b) ? -1 : 1;
      return compareUtf8(a.id, b.id);
    });
}

/** `[since, to)` in µs; by creation, then id. */
export function windowCreated(
  expected: ExpectedRecords,
  client: string,
  since: bigint,
  to: bigint,
): ExpectedRecord[] {
  return window(expected, client, (record) => record.dateCreated, since, to);
}

/** `[since, to)` in µs; by update, then id. */
export function windowUpdated(
  expected: ExpectedRecords,
  client: string,
  since: bigint,
  to: bigint,
): ExpectedRecord[] {
  return window(expected, client, (record) => record.dateUpdated, since, to);
}

/** Independent of order. */
export function checksum(records: Iterable<ExportedRecord>): string {
  let sum = 0n;
  for (const { id, json } of records) {
    const digest = createHash("sha256")
      .update(JSON.stringify([id]))
      .update(json)
      .digest();
    sum = BigInt.asUintN(64, sum + digest.readBigUInt64BE());
  }
  return sum.toString(16).padStart(16, "0");
}
