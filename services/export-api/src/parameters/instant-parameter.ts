import { END_OF_TIME, formatTimestampZ, parseTimestamp } from "@conversation-export/domain";
import { z } from "zod";

/** An instant in µs since the epoch, and its text, which links repeat. */
export type Bound = { readonly micros: number; readonly text: string };

/** The closest instant in the range of the service, µs since the epoch. */
export const clampInstant = (micros: number): number => Math.min(Math.max(micros, 0), END_OF_TIME);

/** `YYYY-MM-DDTHH:MM:SS.ffffff` without an offset, in UTC. */
export const formatNaive = (micros: number): string => formatTimestampZ(micros).slice(0, -1);

const LEAP_YEAR = "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const DAY_OF_YEAR =
  "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))";
/** The days that exist. */
const DATE = `(\\d{4}-${DAY_OF_YEAR}|${LEAP_YEAR}-02-29)`;
const TIME = "([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d([.,]\\d{1,9})?)?";
const OFFSET = "[+-]([01]\\d|2[0-3])(:?[0-5]\\d)?";
/** The forms among these that are a `date-time` of JSON Schema, which knows no others. */
const DATE_TIME = `${DATE}T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)`;

/** Where the blank stands that a raw `+` becomes in a query. */
const BLANK_BEFORE_OFFSET = / (?=\d{2}(?::?\d{2})?$)/;

/**
 * A parameter that takes the texts of `pattern`.
 * @param options.shown what the reference shows instead of `pattern`
 * @param options.textOf the text for links of an accepted instant
 */
const instantOf = (options: {
  readonly pattern: string;
  readonly shown?: { readonly format: "date-time"; readonly pattern: string };
  readonly wanted: string;
  readonly textOf: (text: string, micros: number) => string;
}) => {
  const { pattern, shown = { pattern }, wanted, textOf } = options;
  const form = new RegExp(pattern);
  const read = (text: string): number | undefined => (form.test(text) ? parseTimestamp(text) : undefined);
  const problemOf = (text: string): string =>
    read(text.replace(BLANK_BEFORE_OFFSET, "+")) === undefined
      ? wanted
      : `${wanted}; a raw + in a query is read as a blank: write %2B instead, or the time in UTC with Z`;
  return z
    .string()
    .transform((text, context): Bound => {
      const micros = read(text);
      if (micros !== undefined) return { micros, text: textOf(text, micros) };
      context.addIssue(problemOf(text));
      return z.NEVER;
    })
    .meta({ override: { type: "string", ...shown } });
};

/** A timestamp with `Z` or an offset; links have it in UTC with `Z`. */
export const instant = instantOf({
  pattern: `^${DATE}T${TIME}(Z|${OFFSET})$`,
  // Generated clients then take dates, and send one of these forms.
  shown: { format: "date-time", pattern: `^${DATE_TIME}$` },
  wanted: "must be an existing ISO 8601 timestamp with Z or an offset, such as 2026-10-01T00:00:00Z",
  textOf: (text, micros) => (text.endsWith("Z") ? text : formatTimestampZ(clampInstant(micros))),
});

/** A timestamp in UTC or with an offset; links repeat it as it was given. */
export const legacyInstant = instantOf({
  pattern: `^${DATE}T${TIME}([Zz]|${OFFSET})?$`,
  wanted:
    "must be an existing ISO 8601 timestamp, in UTC when it has no offset, such as 2026-10-01T00:00:00.000000",
  textOf: (text) => text,
});

type NullableText = { anyOf?: { pattern?: string; format?: string }[] };

/** A parameter that is absent when its value is empty or the literal `null`. */
export const orAbsent = <S extends z.ZodType>(
  schema: S,
  meta: { description: string; examples?: string[] },
) =>
  schema.nullish().meta({
    ...meta,
    override: ({ jsonSchema }: { jsonSchema: NullableText }) => {
      const { pattern, format } = jsonSchema.anyOf?.[0] ?? {};
      delete jsonSchema.anyOf;
      Object.assign(jsonSchema, {
        type: ["string", "null"],
        ...(format !== undefined && { format }),
        pattern: `^(null)?$|${pattern}`,
      });
    },
  });
