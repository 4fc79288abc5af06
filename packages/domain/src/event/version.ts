import type { Micros } from "./timestamp.ts";

/** A line of a file without a position has its number as offset in partition 0. */
export type BusPosition = {
  /** 0 to 65,535 */
  readonly partition: number;
  /** 0 to 2^48 - 1 */
  readonly offset: number;
};

/** The later instant wins, then the later place; in ClickHouse exportedAt << 64 | partition << 48 | offset. */
export type Version = BusPosition & { readonly exportedAt: Micros };

export function compareVersions(a: Version, b: Version): number {
  return a.exportedAt - b.exportedAt || a.partition - b.partition || a.offset - b.offset;
}
