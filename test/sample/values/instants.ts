import type { Random } from "./random.ts";

/** Since 1970-01-01T00:00:00Z; far below 2^53. */
export type Micros = number;

export const SECOND: Micros = 1_000_000;
export const MINUTE: Micros = 60 * SECOND;
export const HOUR: Micros = 60 * MINUTE;
export const DAY: Micros = 24 * HOUR;

/** In minutes; none means UTC. */
export const SUFFIXES: readonly (readonly [text: string, minutes: number])[] = [
  ["Z", 0],
  ["", 0],
  ["+00:00", 0],
  ["+05:30", 330],
  ["-08:00", -480],
  ["+01:00", 60],
  ["+14:00", 840],
  ["+09", 540],
];

/** So that every number of fraction digits occurs. */
const UNITS = [1, 1, 1, 10, 100, 1_000, 1_000, 10_000, 100_000, SECOND, SECOND] as const;

export function coarsen(random: Random, instant: Micros): Micros {
  const unit = random.pick(UNITS);
  return Math.floor(instant / unit) * unit;
}

function digitsNeeded(fraction: string): number {
  let digits = 6;
  while (digits > 0 && fraction[digits - 1] === "0") digits -= 1;
  return digits;
}

/** Readers must cut digits beyond the sixth. */
export function writeInstant(random: Random, instant: Micros): string {
  const [suffix, minutes] = random.pick(SUFFIXES);
  const local = instant + minutes * MINUTE;
  const seconds = Math.floor(local / SECOND);
  const day = new Date(seconds * 1000).toISOString();
  const fraction =
    String(local - seconds * SECOND).padStart(6, "0") + random.pick(["000", "999", "500", "123"]);
  const needed = digitsNeeded(fraction);
  const digits = needed + random.int(10 - needed);
  const separator = random.chance(0.25) ? " " : "T";
  const point = digits === 0 ? "" : `.${fraction.slice(0, digits)}`;
  return `${day.slice(0, 10)}${separator}${day.slice(11, 19)}${point}${suffix}`;
}
