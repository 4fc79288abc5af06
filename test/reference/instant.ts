const FORM =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?$/;

/** true when the text has the form of a date-time, even one that does not exist. */
export function hasForm(text: string): boolean {
  return FORM.test(text);
}

/**
 * Microseconds since 1970-01-01T00:00:00Z of an ISO 8601 date-time; digits beyond the sixth are cut; no
 * offset means UTC. undefined when the text has another form or names an instant that does not exist.
 */
export function readInstant(text: string): bigint | undefined {
  const parts = FORM.exec(text);
  if (parts === null) return undefined;
  const [
    ,
    year,
    month,
    day,
    hour,
    minute,
    second = "00",
    fraction = "",
    sign,
    offsetHour = "0",
    offsetMinute = "0",
  ] = parts;
  const wall = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const milliseconds = Date.parse(`${wall}Z`);
  // Date moves some non-existent days into the next month instead of refusing them, and accepts hour 24.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 19) !== wall)
    return undefined;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;
  const offsetSeconds = BigInt(Number(offsetHour) * 3600 + Number(offsetMinute) * 60);
  const micros = BigInt(fraction.slice(0, 6).padEnd(6, "0"));
  return BigInt(milliseconds) * 1000n + micros - (sign === "-" ? -offsetSeconds : offsetSeconds) * 1_000_000n;
}

const LAST = 4_291_747_200_000_000n;

/** true from 1970-01-01 to the end of 2105-12-31. */
export function isInRange(instant: bigint): boolean {
  return instant >= 0n && instant < LAST;
}

/** The form of all exported dates: microseconds and +00:00. */
export function writeUtc(instant: bigint): string {
  const second = new Date(Number(instant / 1_000_000n) * 1000).toISOString().slice(0, 19);
  return `${second}.${String(instant % 1_000_000n).padStart(6, "0")}+00:00`;
}
