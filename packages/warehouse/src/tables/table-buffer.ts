import { type ExportRecord, formatTimestamp, type Version } from "@conversation-export/domain";
import { RowBinary } from "./row-binary.ts";

/** Characters. */
export const STAMP_LENGTH = 32;

export type TableBuffer = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly row: RowBinary;
  /** Gap for the stamp as DateTime64(6). */
  uploadedAt(): void;
  /** Gap for the stamp plus 1 µs per earlier one. */
  storedAt(): void;
  /** Gap for the stamp as text. */
  stampAt(at: number): void;
  endRow(): void;
  rows(): number;
  startOf(index: number): number;
  clear(): void;
  /** µs; may be repeated. */
  fillUpload(instant: number): void;
};

export type Encoding = {
  readonly columns: readonly string[];
  encode(table: TableBuffer, record: ExportRecord): void;
};

export function createTableBuffer(
  table: string,
  columns: readonly string[],
  initialBytes: number,
): TableBuffer {
  const row = new RowBinary(initialBytes);
  const tickPlaces: number[] = [];
  const storedPlaces: number[] = [];
  const stampPlaces: number[] = [];
  const starts: number[] = [0];
  return {
    table,
    columns,
    row,
    uploadedAt() {
      tickPlaces.push(row.length);
      row.uint64(0);
    },
    storedAt() {
      storedPlaces.push(row.length);
      row.uint64(0);
    },
    stampAt(at) {
      stampPlaces.push(at);
    },
    endRow() {
      starts.push(row.length);
    },
    rows: () => starts.length - 1,
    startOf: (index) => starts[index] ?? row.length,
    clear() {
      row.clear();
      tickPlaces.length = 0;
      storedPlaces.length = 0;
      stampPlaces.length = 0;
      starts.length = 1;
    },
    fillUpload(instant) {
      const stamp = Buffer.from(formatTimestamp(instant));
      for (const at of tickPlaces) row.fillUint64(at, instant);
      storedPlaces.forEach((at, index) => row.fillUint64(at, instant + index));
      for (const at of stampPlaces) row.fillBytes(at, stamp);
    },
  };
}

export const writeVersion = (row: RowBinary, version: Version): void => {
  row.busPosition(version.partition, version.offset);
  row.uint64(version.exportedAt);
};
