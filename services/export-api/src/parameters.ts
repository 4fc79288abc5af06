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

const DEFAULT_WINDOW = 7 * 86_400_000_000;
const DEFAULT_PAGE_SIZE = 10_000;

const instant = z.string().transform((text, context) => {
  const micros = text.endsWith("Z") && text.charAt(10) === "T" ? parseTimestamp(text) : undefined;
  if (micros !== undefined) return { micros, text };
  context.addIssue("must be an existing ISO 8601 UTC timestamp ending in Z");
  return z.NEVER;
});

const pageSize = z.string().transform((text, context) => {
  const size = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  if (size >= 100 && size <= 10_000) return size;
  context.addIssue("must be an integer from 100 to 10000");
  return z.NEVER;
});

const common = {
  created_since: instant.optional(),
  created_to: instant.optional(),
  page_size: pageSize.optional(),
  cursor: z.string().optional(),
};

const conversations = z.object({
  ...common,
  updated_since: instant.optional(),
  updated_to: instant.optional(),
});

const messages = z.object({ ...common, conversation_id: z.string().optional() });

/** Parameters for which an empty value or the literal null means that they are absent. */
const NULLABLE: ReadonlySet<string> = new Set(["created_to", "updated_to", "conversation_id", "cursor"]);

/** Names and values of a query against the names of a schema: unknown, repeated and wrong ones are named. */
const readParameters = <S extends z.ZodObject>(
  schema: S,
  target: string,
): { values: Partial<z.output<S>>; given: ReadonlySet<string>; problems: string[] } => {
  const { pairs, problems } = readQuery(target);
  const unknown = new Set<string>();
  const repeated = new Set<string>();
  const seen = new Set<string>();
  const given = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (!Object.hasOwn(schema.shape, name)) unknown.add(name);
    else if (seen.has(name)) repeated.add(name);
    else if (!(NULLABLE.has(name) && (value === "" || value === "null"))) given.set(name, value);
    seen.add(name);
  }
  for (const name of unknown) problems.push(`${name}: unknown parameter`);
  for (const name of repeated) problems.push(`${name}: given more than once`);
  const result = schema.safeParse(Object.fromEntries(given));
  if (!result.success) {
    for (const issue of result.error.issues) problems.push(`${String(issue.path[0])}: ${issue.message}`);
  }
  return { values: result.success ? result.data : {}, given: new Set(given.keys()), problems };
};

const clamp = (micros: number): number => Math.min(Math.max(micros, 0), END_OF_TIME);

const toPageRequest = (
  filter: PageRequest["filter"],
  bounds: { since: z.output<typeof instant>; to: z.output<typeof instant> | undefined },
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

/** Reads the query of a request for conversations (section 4.1 of the specification). */
export const readConversationParameters = (target: string): PageRequestResult => {
  const { values, given, problems } = readParameters(conversations, target);
  const created = given.has("created_since") || given.has("created_to");
  const updated = given.has("updated_since") || given.has("updated_to");
  if (created && updated) {
    const names = [...given].filter((name) => name.startsWith("created_") || name.startsWith("updated_"));
    problems.push(`${names.join(", ")}: created and updated filters exclude each other`);
  } else if (!created && !updated) {
    problems.push("created_since, updated_since: one of them is required");
  }
  for (const family of ["created", "updated"]) {
    if (given.has(`${family}_to`) && !given.has(`${family}_since`)) {
      problems.push(`${family}_to: needs ${family}_since`);
    }
  }
  const since = values.created_since ?? values.updated_since;
  if (problems.length > 0 || since === undefined) return { problems };
  return updated
    ? { request: toPageRequest("updated", { since, to: values.updated_to }, values) }
    : { request: toPageRequest("created", { since, to: values.created_to }, values) };
};

/** Reads the query of a request for messages (section 4.2 of the specification). */
export const readMessageParameters = (target: string): PageRequestResult => {
  const { values, given, problems } = readParameters(messages, target);
  if (!given.has("created_since")) problems.push("created_since: is required");
  const since = values.created_since;
  if (problems.length > 0 || since === undefined) return { problems };
  return { request: toPageRequest("created", { since, to: values.created_to }, values) };
};
