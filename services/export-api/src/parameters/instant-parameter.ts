import { END_OF_TIME, formatTimestampZ, parseTimestamp } from "@conversation-export/domain";
import { z } from "zod";

/** Links repeat `text`. */
export type Bound = { readonly micros: number; readonly text: string };

export const clampInstant = (micros: number): number => Math.min(Math.max(micros, 0), END_OF_TIME);

export const formatNaive = (micros: number): string => formatTimestampZ(micros).slice(0, -1);

const LEAP_YEAR = "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const DAY_OF_YEAR =
  "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))";
/** Only days that exist. */
const DATE = `(\\d{4}-${DAY_OF_YEAR}|${LEAP_YEAR}-02-29)`;
const TIME = "([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d([.,]\\d{1,9})?)?";
const OFFSET = "[+-]([01]\\d|2[0-3])(:?[0-5]\\d)?";
const DATE_TIME = `${DATE}T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)`;

/** A raw `+` in a query becomes this blank. */
const BLANK_BEFORE_OFFSET = / (?=\d{2}(?::?\d{2})?$)/;

/** `shown`: for the reference; `textOf`: for links. */
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

/** Links have it in UTC. */
export const instant = instantOf({
  pattern: `^${DATE}T${TIME}(Z|${OFFSET})$`,
  // Generated clients then take dates.
  shown: { format: "date-time", pattern: `^${DATE_TIME}$` },
  wanted: "must be an existing ISO 8601 timestamp with Z or an offset, such as 2026-10-01T00:00:00Z",
  textOf: (text, micros) => (text.endsWith("Z") ? text : formatTimestampZ(clampInstant(micros))),
});

/** Links repeat it as given. */
export const legacyInstant = instantOf({
  pattern: `^${DATE}T${TIME}([Zz]|${OFFSET})?$`,
  wanted:
    "must be an existing ISO 8601 timestamp, in UTC when it has no offset, such as 2026-10-01T00:00:00.000000",
  textOf: (text) => text,
});

type NullableText = { anyOf?: { pattern?: string; format?: string }[] };

/** Empty or the literal `null` means absent. */
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
