import { formatTimestamp, formatTimestampZ, parseTimestamp } from "@conversation-export/domain";
import { z } from "zod";
import type { LinkForm } from "./next-page.ts";
import {
  type Bound,
  DEFAULT_WINDOW,
  filterProblems,
  instantProblem,
  orAbsent,
  type PageRequestResult,
  readParameters,
  toPageRequest,
  wholeNumber,
} from "./parameters.ts";

const INSTANT_FORM =
  "^\\d{4}-[01]\\d-[0-3]\\dT[0-2]\\d:[0-5]\\d(:[0-5]\\d([.,]\\d{1,9})?)?([Zz]|[+-]\\d{2}(:?\\d{2})?)?$";
const MAX_PAGE_SIZE = 10_000;

const instant = z
  .string()
  .transform((text, context) => {
    const micros = text.charAt(10) === "T" ? parseTimestamp(text) : undefined;
    if (micros !== undefined) return { micros, text };
    context.addIssue(
      instantProblem(text, "must be an existing ISO 8601 timestamp, in UTC when it has no offset"),
    );
    return z.NEVER;
  })
  .meta({ override: { type: "string", pattern: INSTANT_FORM } });

const CREATED_SINCE = "Records created at this time or later; without an offset it means UTC";
const EXAMPLES = ["2023-06-28T17:59:28.201000"];

const common = {
  created_to: orAbsent(instant, {
    description: "Records created earlier than this. Without it: 7 days after `created_since`",
  }),
  page_size: wholeNumber(1, MAX_PAGE_SIZE, MAX_PAGE_SIZE)
    .optional()
    .meta({ description: "The largest number of records in a page", examples: [100] }),
  cursor: z.string().nullish().meta({
    description: "The place after which the page starts, as a link carries it; it fits no other request",
  }),
};

/** The query of a legacy request for conversations (section 4.6 of the specification). */
export const legacyConversationParameters = z.object({
  created_since: instant.optional().meta({
    description: `${CREATED_SINCE}. Without any filter: the last 7 days`,
    examples: EXAMPLES,
  }),
  ...common,
  updated_since: instant.optional().meta({
    description: "Records updated at this time or later, in the order of their updates",
  }),
  updated_to: orAbsent(instant, {
    description: "Records updated earlier than this. Without it: 7 days after `updated_since`",
  }),
});

/** The query of a legacy request for messages (section 4.6 of the specification). */
export const legacyMessageParameters = z.object({
  created_since: instant.meta({ description: CREATED_SINCE, examples: EXAMPLES }),
  ...common,
});

const boundOf = (micros: number): Bound => ({ micros, text: formatNaive(micros) });

/** @param now µs since the epoch: without any filter the last 7 days are meant */
export const readLegacyConversationParameters = (target: string, now: number): PageRequestResult => {
  const { values, given, problems } = readParameters(legacyConversationParameters, target);
  problems.push(...filterProblems(given));
  if (problems.length > 0) return { problems };
  const { created_since: created, created_to, updated_since: updated, updated_to } = values;
  if (updated !== undefined) {
    return { request: toPageRequest("updated", { since: updated, to: updated_to }, values) };
  }
  const bounds =
    created === undefined
      ? { since: boundOf(now - DEFAULT_WINDOW), to: boundOf(now) }
      : { since: created, to: created_to };
  return { request: toPageRequest("created", bounds, values) };
};

/** Without an upper bound one week is meant (section 9 of the specification). */
export const readLegacyMessageParameters = (target: string): PageRequestResult => {
  const { values, problems } = readParameters(legacyMessageParameters, target);
  const { created_since: since, created_to: to } = values;
  if (problems.length > 0 || since === undefined) return { problems };
  return { request: toPageRequest("created", { since, to }, values) };
};

/** `YYYY-MM-DDTHH:MM:SS.ffffff`, in UTC. */
const formatNaive = (micros: number): string => formatTimestampZ(micros).slice(0, -1);

/** Links with timestamps in the client's own form, naive unless it writes an offset, and `%3A` for colons. */
export const LEGACY_LINK_FORM: LinkForm = {
  instant: (micros, given) => {
    if (/z$/i.test(given)) return formatTimestampZ(micros);
    return /[+-]\d{2}(?::?\d{2})?$/.test(given) ? formatTimestamp(micros) : formatNaive(micros);
  },
  query: (pairs) =>
    pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&"),
};
