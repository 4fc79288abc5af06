const FORM =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?$/;

/** Even of an instant that does not exist. */
export function hasForm(text: string): boolean {
  return FORM.test(text);
}

/** µs; undefined: no existing instant. */
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
  // Date accepts hour 24, and moves some days that do not exist to the next month.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString().slice(0, 19) !== wall)
    return undefined;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;
  const offsetSeconds = BigInt(Number(offsetHour) * 3600 + Number(offsetMinute) * 60);
  const micros = BigInt(fraction.slice(0, 6).padEnd(6, "0"));
  return BigInt(milliseconds) * 1000n + micros - (sign === "-" ? -offsetSeconds : offsetSeconds) * 1_000_000n;
}

const LAST = 4_291_747_200_000_000n;

export function isInRange(instant: bigint): boolean {
  return instant >= 0n && instant < LAST;
}

export function writeUtc(instant: bigint): string {
  const second = new Date(Number(instant / 1_000_000n) * 1000).toISOString().slice(0, 19);
  return `${second}.${String(instant % 1_000_000n).padStart(6, "0")}+00:00`;
}
