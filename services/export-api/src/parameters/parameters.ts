import { z } from "zod";
import { closestName } from "./closest-name.ts";
import { readQuery } from "./query-string.ts";

export const MAX_PAGE_SIZE = 10_000;

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

export const DEFAULT_LIMIT = 100;

export const limitOf = (entries: string) =>
  wholeNumber(1, 1_000, DEFAULT_LIMIT)
    .optional()
    .meta({ description: `The largest number of ${entries} in a page`, examples: [100] });

export const CURSOR = z.string().nullish().meta({
  description: "The place after which the page starts, as a link carries it; it fits no other request",
});

/** With problems there are no values. */
export type ReadParameters<S extends z.ZodObject> = {
  readonly values: { readonly [Name in keyof z.output<S>]?: NonNullable<z.output<S>[Name]> };
  readonly given: ReadonlySet<string>;
  readonly problems: string[];
};

/** Where the schema takes null, an empty value or `null` means absent. */
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
  // Absent parameters were left out above.
  const values = (result.success && problems.length === 0 ? result.data : {}) as ReadParameters<S>["values"];
  return { values, given: new Set(given.keys()), problems };
};
