/** Whole µs since the epoch; accepted ones are below 2^53. */
export type Micros = number;

export const MICROS_IN_SECOND = 1_000_000;
export const MICROS_IN_DAY = 86_400_000_000;

/** Unsigned versions wrap below it. */
export const MIN_INSTANT: Micros = 0;
/** 2106-01-01T00:00:00Z: ClickHouse's hour and day functions wrap above. */
export const END_OF_TIME: Micros = 4_291_747_200_000_000;

const SPACE = 32;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const COLON = 58;
const CAPITAL_T = 84;
const CAPITAL_Z = 90;
const SMALL_Z = 122;

const MOST_FRACTION_DIGITS = 9;
const KEPT_FRACTION_DIGITS = 6;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const POWER = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/** H. Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

type Civil = { year: number; month: number; day: number };

function civilFromDays(days: number): Civil {
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day };
}

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

type Parts = {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** µs */
  readonly fraction: number;
  readonly offsetSign: number;
  readonly offsetHour: number;
  readonly offsetMinute: number;
};

const digitAt = (text: string, at: number): number => {
  const digit = text.charCodeAt(at) - ZERO;
  return digit >= 0 && digit <= 9 ? digit : NaN;
};

const pairAt = (text: string, at: number): number => digitAt(text, at) * 10 + digitAt(text, at + 1);

function afterFraction(text: string, start: number): number {
  let at = start;
  while (at <= start + MOST_FRACTION_DIGITS && digitAt(text, at) >= 0) at += 1;
  return at;
}

/** µs */
function fractionOf(text: string, start: number, end: number): number {
  const kept = Math.min(end, start + KEPT_FRACTION_DIGITS);
  let value = 0;
  for (let at = start; at < kept; at += 1) value = value * 10 + digitAt(text, at);
  return value * (POWER[kept - start] ?? 1);
}

function partsOf(text: string): Parts | undefined {
  // A regular expression takes five times as long.
  const between = text.charCodeAt(10);
  if (text.charCodeAt(4) !== MINUS || text.charCodeAt(7) !== MINUS) return undefined;
  if ((between !== CAPITAL_T && between !== SPACE) || text.charCodeAt(13) !== COLON) return undefined;
  let second = 0;
  let fraction = 0;
  let at = 16;
  if (text.charCodeAt(at) === COLON) {
    second = pairAt(text, at + 1);
    at += 3;
    const mark = text.charCodeAt(at);
    if (mark === DOT || mark === COMMA) {
      const end = afterFraction(text, at + 1);
      if (end === at + 1 || end > at + 1 + MOST_FRACTION_DIGITS) return undefined;
      fraction = fractionOf(text, at + 1, end);
      at = end;
    }
  }
  let offsetHour = 0;
  let offsetMinute = 0;
  const zone = text.charCodeAt(at);
  if (zone === CAPITAL_Z || zone === SMALL_Z) {
    at += 1;
  } else if (zone === PLUS || zone === MINUS) {
    offsetHour = pairAt(text, at + 1);
    at += 3;
    if (at < text.length) {
      const minutes = text.charCodeAt(at) === COLON ? at + 1 : at;
      offsetMinute = pairAt(text, minutes);
      at = minutes + 2;
    }
  }
  const parts = {
    year: pairAt(text, 0) * 100 + pairAt(text, 2),
    month: pairAt(text, 5),
    day: pairAt(text, 8),
    hour: pairAt(text, 11),
    minute: pairAt(text, 14),
    second,
    fraction,
    offsetSign: zone === MINUS ? -1 : 1,
    offsetHour,
    offsetMinute,
  };
  const { year, month, day, hour, minute } = parts;
  const sum = year + month + day + hour + minute + second + offsetHour + offsetMinute;
  return at === text.length && !Number.isNaN(sum) ? parts : undefined;
}

/** 0 to 9 fraction digits, cut after the sixth; no offset is UTC. May be out of range. */
export function parseTimestamp(text: string): Micros | undefined {
  const parts = partsOf(text);
  if (parts === undefined) return undefined;
  const { year, month, day, hour, minute, second, fraction, offsetSign, offsetHour, offsetMinute } = parts;
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59) return undefined;
  const monthDays = month === 2 && isLeap(year) ? 29 : DAYS_IN_MONTH[month - 1];
  if (monthDays === undefined || day > monthDays) return undefined;
  if (offsetHour > 23 || offsetMinute > 59) return undefined;
  const offsetMinutes = offsetSign * (offsetHour * 60 + offsetMinute);
  const seconds = (hour * 60 + minute - offsetMinutes) * 60 + second;
  return daysFromCivil(year, month, day) * MICROS_IN_DAY + seconds * 1_000_000 + fraction;
}

/** True also for dates that do not exist. */
export function isTimestampForm(text: string): boolean {
  return partsOf(text) !== undefined;
}

export function isAcceptedInstant(instant: Micros): boolean {
  return instant >= MIN_INSTANT && instant < END_OF_TIME;
}

const textsOf = (count: number, digits: number): readonly string[] =>
  Array.from({ length: count }, (_, value) => String(value).padStart(digits, "0"));
const TWO_DIGITS = textsOf(100, 2);
const THREE_DIGITS = textsOf(1000, 3);

function twoDigits(value: number): string {
  return TWO_DIGITS[value] ?? "";
}

function threeDigits(value: number): string {
  return THREE_DIGITS[value] ?? "";
}

let cachedDay = Number.NaN;
let cachedDate = "";

function dateText(days: number): string {
  if (days !== cachedDay) {
    const { year, month, day } = civilFromDays(days);
    cachedDate = `${String(year).padStart(4, "0")}-${twoDigits(month)}-${twoDigits(day)}T`;
    cachedDay = days;
  }
  return cachedDate;
}

function formatWith(instant: Micros, suffix: string): string {
  const days = Math.floor(instant / MICROS_IN_DAY);
  const inDay = instant - days * MICROS_IN_DAY;
  const seconds = Math.floor(inDay / 1_000_000);
  const micros = inDay - seconds * 1_000_000;
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const millis = Math.floor(micros / 1000);
  const fraction = threeDigits(millis) + threeDigits(micros - millis * 1000);
  return `${dateText(days)}${twoDigits(hours)}:${twoDigits(minutes - hours * 60)}:${twoDigits(seconds - minutes * 60)}.${fraction}${suffix}`;
}

/** The form in which dates leave: `YYYY-MM-DDTHH:MM:SS.ffffff+00:00`. */
export function formatTimestamp(instant: Micros): string {
  return formatWith(instant, "+00:00");
}

/** For links: `YYYY-MM-DDTHH:MM:SS.ffffffZ`. */
export function formatTimestampZ(instant: Micros): string {
  return formatWith(instant, "Z");
}

/** year * 12 + month - 1 */
export function monthOf(instant: Micros): number {
  const { year, month } = civilFromDays(Math.floor(instant / MICROS_IN_DAY));
  return year * 12 + month - 1;
}
