import { type RecordTable, type StoredRow, TABLE_FACTS } from "@conversation-export/domain";
import { rowDigestSql } from "../../tables/row-digest.ts";

/** Named as in `backfill_rows`. */
export const storedColumns = (table: RecordTable): string => {
  const { keyDate } = TABLE_FACTS[table];
  const [target, kind] = table === "handoffs" ? ["target", "toUInt8(target_kind)"] : ["''", "0"];
  // The block number in a part's name increases in the order of insertion.
  return `${keyDate === null ? "0" : `toUnixTimestamp64Micro(${keyDate})`} AS key_date, ${target} AS target,
    ${kind} AS target_kind, version, uploaded_at, toUInt64(splitByChar('_', _part)[2]) AS block,
    _part_offset AS place, ${rowDigestSql(table)} AS digest`;
};

export type StoredValues = [
  table: RecordTable,
  date: number,
  target: string,
  kind: 0 | 1 | 2,
  version: string,
  uploadedAt: number,
  digest: string,
];

export const storedRowOf = ([
  table,
  date,
  target,
  targetKind,
  version,
  uploadedAt,
  digest,
]: StoredValues): StoredRow => ({
  table,
  date,
  target,
  targetKind,
  version: BigInt(version),
  uploadedAt,
  digest,
});
