import type { Micros } from "./timestamp.ts";

/** A file's line without a position: partition 0, its number as offset. */
export type BusPosition = {
  /** 0 to 65,535 */
  readonly partition: number;
  /** 0 to 2^48 - 1 */
  readonly offset: number;
};

/** exportedAt << 64 | partition << 48 | offset; the largest wins. */
export type Version = BusPosition & { readonly exportedAt: Micros };
