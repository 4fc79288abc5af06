import type { Micros } from "./timestamp.ts";

/**
 * Where a record stands on the bus. A line of a file without a position has its number as offset in partition
 * 0.
 */
export type BusPosition = {
  /** 0 to 65,535 */
  readonly partition: number;
  /** 0 to 2^48 - 1 */
  readonly offset: number;
};

/**
 * Of two exports of one record the later instant wins, then the later place on the bus. In the warehouse:
 * exportedAt << 64 | partition << 48 | offset.
 */
export type Version = BusPosition & { readonly exportedAt: Micros };

/** Negative, zero or positive as `a` is older than, the same as or newer than `b`. */
export function compareVersions(a: Version, b: Version): number {
  return a.exportedAt - b.exportedAt || a.partition - b.partition || a.offset - b.offset;
}
