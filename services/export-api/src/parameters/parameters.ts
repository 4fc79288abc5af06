import { MICROS_IN_DAY } from "@conversation-export/domain";
import { z } from "zod";
import { closestName } from "../http/closest-name.ts";
import { type Bound, clampInstant } from "./instant-parameter.ts";
import { readQuery } from "./query-string.ts";

/** A request for one page. Instants are µs since the epoch, clamped to the range of the service. */
export type PageRequest = {
  /** The date to filter and sort by. */
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

/** The window of a request without an upper bound, in µs. */
export const DEFAULT_WINDOW = 7 * MICROS_IN_DAY;
/** Records in a page, at most and when the request names no size. */
export const MAX_PAGE_SIZE = 10_000;

/** A whole number in plain digits; the reference shows its bounds. */
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

/** The parameter `conversation_id` of messages. */
export const CONVERSATION_ID = z
  .string()
  .nullish()
  .meta({
    description: "Only messages of this conversation",
    examples: ["64f1c0ffee64f1c0ffee64f1"],
  });

/** The parameter `cursor` of operations that are paged by date. */
export const CURSOR = z.string().nullish().meta({
  description: "The place after which the page starts, as a link carries it; it fits no other request",
});

/**
 * The parameters of a query: their values, the names that have one, and a line for each problem. With
 * problems there are no values.
 */
export type ReadParameters<S extends z.ZodObject> = {
  readonly values: { readonly [Name in keyof z.output<S>]?: NonNullable<z.output<S>[Name]> };
  readonly given: ReadonlySet<string>;
  readonly problems: string[];
};

/**
 * Reads the query of a request target by a schema of strings; `problems` names each unknown, repeated,
 * missing and wrong parameter. Where the schema takes null, an empty value or the literal `null` means
 * absent.
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
  for (const name of unknown) {
    const meant = closestName(name, Object.keys(shape));
    problems.push(`${name}: unknown parameter${meant === undefined ? "" : ` (did you mean ${meant}?)`}`);
  }
  for (const name of repeated) problems.push(`${name}: given more than once`);
  const result = schema.safeParse(Object.fromEntries(given));
  if (!result.success) {
    for (const { path, message } of result.error.issues) {
      const name = String(path[0]);
      problems.push(`${name}: ${given.has(name) || repeated.has(name) ? message : "is required"}`);
    }
  }
  // Absent parameters were left out above, so no value is null.
  const values = (result.success && problems.length === 0 ? result.data : {}) as ReadParameters<S>["values"];
  return { values, given: new Set(given.keys()), problems };
};

/** A request with the defaults filled in, and its bounds clamped to the range of the service. */
export const toPageRequest = (
  filter: PageRequest["filter"],
  bounds: { since: Bound; to: Bound | undefined },
  rest: { page_size?: number | undefined; conversation_id?: string | undefined; cursor?: string | undefined },
): PageRequest => ({
  filter,
  // Clients compute bounds such as now - 365 days: one outside the range is never an error.
  since: clampInstant(bounds.since.micros),
  to: clampInstant(bounds.to?.micros ?? bounds.since.micros + DEFAULT_WINDOW),
  sinceText: bounds.since.text,
  toText: bounds.to?.text,
  pageSize: rest.page_size ?? MAX_PAGE_SIZE,
  pageSizeGiven: rest.page_size !== undefined,
  conversationId: rest.conversation_id,
  cursor: rest.cursor,
});

/** A line for each conflict between the filters of a request for conversations. */
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
