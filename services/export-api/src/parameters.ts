import { END_OF_TIME, parseTimestamp } from "@conversation-export/domain";
import { z } from "zod";
import { readQuery } from "./query-string.ts";

/** What a request for one page asks for. Instants are µs since the epoch, inside the range of the service. */
export type PageRequest = {
  /** The date that is filtered and sorted by. */
  readonly filter: "created" | "updated";
  readonly since: number;
  readonly to: number;
  /** The bounds as they were given; a link repeats them. */
  readonly sinceText: string;
  readonly toText: string | undefined;
  readonly pageSize: number;
  readonly pageSizeGiven: boolean;
  readonly conversationId: string | undefined;
  readonly cursor: string | undefined;
};

/** The request, or one line for each thing that is wrong with it. */
export type PageRequestResult = { request: PageRequest } | { problems: readonly string[] };

/** µs */
export const DEFAULT_WINDOW = 7 * 86_400_000_000;
const DEFAULT_PAGE_SIZE = 10_000;

/** The form of a UTC timestamp as the reference shows it; whether the date exists is checked beside it. */
const INSTANT_FORM = "^\\d{4}-[01]\\d-[0-3]\\dT[0-2]\\d:[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?Z$";
const BLANK_OFFSET = / \d{2}(?::?\d{2})?$/;

/** What to say about a timestamp of the wrong form; an offset behind a raw `+` has arrived behind a blank. */
export const instantProblem = (text: string, wanted: string): string =>
  BLANK_OFFSET.test(text)
    ? `${wanted}; a raw + in a query is read as a blank: write %2B, or Z instead of the offset`
    : wanted;

const instant = z
  .string()
  .transform((text, context) => {
    const micros = text.endsWith("Z") && text.charAt(10) === "T" ? parseTimestamp(text) : undefined;
    if (micros !== undefined) return { micros, text };
    context.addIssue(instantProblem(text, "must be an existing ISO 8601 UTC timestamp ending in Z"));
    return z.NEVER;
  })
  .meta({ override: { type: "string", format: "date-time", pattern: INSTANT_FORM } });

/** A whole number in plain digits; its bounds stand in the reference too. */
export const wholeNumber = (minimum: number, maximum: number, fallback: number) =>
  z
    .string()
    .transform((text, context) => {
      const size = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
      if (size >= minimum && size <= maximum) return size;
      context.addIssue(`must be an integer from ${minimum} to ${maximum}`);
      return z.NEVER;
    })
    .meta({ override: { type: "integer", format: "int32", minimum, maximum, default: fallback } });

type NullableText = { anyOf?: { pattern?: string }[]; type?: string[]; pattern?: string };

/** A timestamp of this form for which an empty value or the literal `null` means that it is absent. */
export const orAbsent = <S extends z.ZodType>(
  schema: S,
  meta: { description: string; examples?: string[] },
) =>
  schema.nullish().meta({
    ...meta,
    override: ({ jsonSchema }: { jsonSchema: NullableText }) => {
      const form = jsonSchema.anyOf?.[0]?.pattern;
      delete jsonSchema.anyOf;
      Object.assign(jsonSchema, { type: ["string", "null"], pattern: `^$|${form}` });
    },
  });

const CURSOR = "The place after which the page starts, as a link carries it; it fits no other request";

const common = {
  created_to: orAbsent(instant, {
    description:
      "Records created earlier than this. Without it: 7 days after `created_since`. Needs `created_since`",
    examples: ["2026-10-08T00:00:00Z"],
  }),
  page_size: wholeNumber(100, DEFAULT_PAGE_SIZE, DEFAULT_PAGE_SIZE)
    .optional()
    .meta({ description: "The largest number of records in a page", examples: [1000] }),
  cursor: z.string().nullish().meta({ description: CURSOR }),
};

const CREATED_SINCE = "Records created at this time or later";

/** The query of a request for conversations (section 4.1 of the specification). */
export const conversationParameters = z.object({
  created_since: instant.optional().meta({
    description: `${CREATED_SINCE}. Either this or \`updated_since\` is required; they exclude each other`,
    examples: ["2026-10-01T00:00:00Z"],
  }),
  ...common,
  updated_since: instant.optional().meta({
    description: "Records updated at this time or later, in the order of their updates",
  }),
  updated_to: orAbsent(instant, {
    description:
      "Records updated earlier than this. Without it: 7 days after `updated_since`. Needs `updated_since`",
  }),
});

/** The query of a request for messages (section 4.2 of the specification). */
export const messageParameters = z.object({
  created_since: instant.meta({ description: CREATED_SINCE, examples: ["2026-10-01T00:00:00.123456Z"] }),
  ...common,
  conversation_id: z
    .string()
    .nullish()
    .meta({
      description: "Only messages of this conversation",
      examples: ["64f1c0ffee64f1c0ffee64f1"],
    }),
});

/**
 * What a query held: `values` without those that were absent, the names that were given a value, and one line for
 * each thing that is wrong. With problems there are no values.
 */
export type ReadParameters<S extends z.ZodObject> = {
  readonly values: { readonly [Name in keyof z.output<S>]?: NonNullable<z.output<S>[Name]> };
  readonly given: ReadonlySet<string>;
  readonly problems: string[];
};

/**
 * Reads the query of a request target by a schema of strings: unknown, repeated, missing and wrong parameters are
 * each named. Where the schema takes null, an empty value or the literal `null` means absent.
 */
export const readParameters = <S extends z.ZodObject>(schema: S, target: string): ReadParameters<S> => {
  const { pairs, problems } = readQuery(target);
  const shape: Readonly<Record<string, unknown>> = schema.shape;
  const unknown = new Set<string>();
  const repeated = new Set<string>();
  const seen = new Set<string>();
  const given = new Map<string, string>();
  for (const [name, value] of pairs) {
    const parameter = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (!(parameter instanceof z.ZodType)) unknown.add(name);
    else if (seen.has(name)) repeated.add(name);
    else if (!((value === "" || value === "null") && parameter.isNullable())) given.set(name, value);
    seen.add(name);
  }
  for (const name of unknown) problems.push(`${name}: unknown parameter`);
  for (const name of repeated) problems.push(`${name}: given more than once`);
  const result = schema.safeParse(Object.fromEntries(given));
  if (!result.success) {
    for (const { path, message } of result.error.issues) {
      const name = String(path[0]);
      problems.push(`${name}: ${given.has(name) || repeated.has(name) ? message : "is required"}`);
    }
  }
  // Nulls were taken out before.
  const values = (result.success && problems.length === 0 ? result.data : {}) as ReadParameters<S>["values"];
  return { values, given: new Set(given.keys()), problems };
};

const clamp = (micros: number): number => Math.min(Math.max(micros, 0), END_OF_TIME);

/** An instant in µs since the epoch, and the text that a link repeats for it. */
export type Bound = { readonly micros: number; readonly text: string };

/** Fills in the defaults. */
export const toPageRequest = (
  filter: PageRequest["filter"],
  bounds: { since: Bound; to: Bound | undefined },
  rest: { page_size?: number | undefined; conversation_id?: string | undefined; cursor?: string | undefined },
): PageRequest => ({
  filter,
  // Clients compute bounds such as now - 365 days: one outside the range is never an error.
  since: clamp(bounds.since.micros),
  to: clamp(bounds.to?.micros ?? bounds.since.micros + DEFAULT_WINDOW),
  sinceText: bounds.since.text,
  toText: bounds.to?.text,
  pageSize: rest.page_size ?? DEFAULT_PAGE_SIZE,
  pageSizeGiven: rest.page_size !== undefined,
  conversationId: rest.conversation_id,
  cursor: rest.cursor,
});

/** How the filters of a request for conversations do not fit together. */
export const filterProblems = (given: ReadonlySet<string>): string[] => {
  const problems: string[] = [];
  const created = given.has("created_since") || given.has("created_to");
  const updated = given.has("updated_since") || given.has("updated_to");
  if (created && updated) {
    const names = [...given].filter((name) => name.startsWith("created_") || name.startsWith("updated_"));
    problems.push(`${names.join(", ")}: created and updated filters exclude each other`);
  }
  for (const family of ["created", "updated"]) {
    if (given.has(`${family}_to`) && !given.has(`${family}_since`)) {
      problems.push(`${family}_to: needs ${family}_since`);
    }
  }
  return problems;
};

const FILTERS = ["created_since", "created_to", "updated_since", "updated_to"];

/** Reads the query of a request for conversations (section 4.1 of the specification). */
export const readConversationParameters = (target: string): PageRequestResult => {
  const { values, given, problems } = readParameters(conversationParameters, target);
  problems.push(...filterProblems(given));
  if (FILTERS.every((name) => !given.has(name))) {
    problems.push("created_since, updated_since: one of them is required");
  }
  const since = values.created_since ?? values.updated_since;
  if (problems.length > 0 || since === undefined) return { problems };
  return values.updated_since !== undefined
    ? { request: toPageRequest("updated", { since, to: values.updated_to }, values) }
    : { request: toPageRequest("created", { since, to: values.created_to }, values) };
};

/** Reads the query of a request for messages (section 4.2 of the specification). */
export const readMessageParameters = (target: string): PageRequestResult => {
  const { values, problems } = readParameters(messageParameters, target);
  const since = values.created_since;
  if (problems.length > 0 || since === undefined) return { problems };
  return { request: toPageRequest("created", { since, to: values.created_to }, values) };
};
