import type { Random } from "./random.ts";

/** Whole microseconds since 1970-01-01T00:00:00Z; sample instants are far below 2^53. */
export type Micros = number;

export const SECOND: Micros = 1_000_000;
export const MINUTE: Micros = 60 * SECOND;
export const HOUR: Micros = 60 * MINUTE;
export const DAY: Micros = 24 * HOUR;

/** Suffixes in use: none (UTC), Z, and offsets in ISO 8601's extended form, in minutes. */
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

/** Units that instants are cut to, so that every number of fraction digits occurs. */
const UNITS = [1, 1, 1, 10, 100, 1_000, 1_000, 10_000, 100_000, SECOND, SECOND] as const;

/** `instant` cut to a unit between a microsecond and a second. */
export function coarsen(random: Random, instant: Micros): Micros {
  const unit = random.pick(UNITS);
  return Math.floor(instant / unit) * unit;
}

/** The smallest number of fraction digits that an instant needs: 0 to 6. */
function digitsNeeded(fraction: string): number {
  let digits = 6;
  while (digits > 0 && fraction[digits - 1] === "0") digits -= 1;
  return digits;
}

/** `instant` in one of many ISO 8601 forms. Digits beyond the sixth are noise that readers must cut. */
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
