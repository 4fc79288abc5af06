import { formatTimestamp } from "@conversation-export/domain";
import { RowBinary } from "./row-binary.ts";

/** The characters of a rendered timestamp. */
export const STAMP_LENGTH = 32;

/** Rows of one table in RowBinary, with the places where the instant of upload is filled in. */
export type TableBuffer = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly row: RowBinary;
  /** Leaves room for the instant of upload as DateTime64(6). */
  uploadedAt(): void;
  /** Leaves room for the instant of upload as text at `at`. */
  stampAt(at: number): void;
  endRow(): void;
  rows(): number;
  /** Where row `index` starts, in bytes. */
  startOf(index: number): number;
  /** Starts anew in the same memory. */
  clear(): void;
  /** Writes the instant of upload, µs, everywhere; may be called again with another. */
  fillUpload(instant: number): void;
};

/** Collects rows for one table. `columns` are in the order in which callers write them. */
export function createTableBuffer(
  table: string,
  columns: readonly string[],
  initialBytes: number,
): TableBuffer {
  const row = new RowBinary(initialBytes);
  const tickPlaces: number[] = [];
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
      stampPlaces.length = 0;
      starts.length = 1;
    },
    fillUpload(instant) {
      const stamp = formatTimestamp(instant);
      for (const at of tickPlaces) row.fillUint64(at, instant);
      for (const at of stampPlaces) row.fillText(at, stamp);
    },
  };
}
