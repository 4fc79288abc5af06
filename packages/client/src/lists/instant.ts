const FORM =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)$/;

/** `fraction`: six digits. */
export type Point = { readonly ms: number; readonly fraction: string };

/** Only existing dates with `Z` or an offset; otherwise undefined. */
export const readInstant = (text: string): Point | undefined => {
  const parts = FORM.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((one) => Number(one ?? 0));
  const [digits = "", sign, offsetHour = "0", offsetMinute = "0"] = parts.slice(7);
  const date = new Date(0);
  date.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day);
  // JavaScript moves such a day to the next month.
  if (date.getUTCMonth() + 1 !== month || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour ?? 0, minute ?? 0, second ?? 0);
  const fraction = digits.slice(0, 6).padEnd(6, "0");
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000 * (sign === "-" ? -1 : 1);
  return { ms: date.getTime() - offset + Math.floor(Number(fraction) / 1_000), fraction };
};

/** Earlier than 1970 becomes 1970. */
export const instantText = ({ ms, fraction }: Point): string =>
  ms < 0 ? "1970-01-01T00:00:00.000000Z" : `${new Date(ms).toISOString().slice(0, -4)}${fraction}Z`;
