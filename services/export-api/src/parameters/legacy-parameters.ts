import { z } from "zod";
import { type Bound, legacyInstant, orAbsent } from "./instant-parameter.ts";
import { formatNaive } from "../envelopes/page-link.ts";
import {
  CONVERSATION_ID,
  CURSOR,
  DEFAULT_WINDOW,
  filterProblems,
  MAX_PAGE_SIZE,
  type PageRequestResult,
  readParameters,
  toPageRequest,
  wholeNumber,
} from "./parameters.ts";

const CREATED_SINCE = "Records created at this time or later; without an offset it means UTC";
const EXAMPLES = ["2023-06-28T17:59:28.201000"];

const common = {
  created_to: orAbsent(legacyInstant, {
    description: "Records created earlier than this. Without it: 7 days after `created_since`",
  }),
  page_size: wholeNumber(1, MAX_PAGE_SIZE, MAX_PAGE_SIZE)
    .optional()
    .meta({ description: "The largest number of records in a page", examples: [100] }),
  cursor: CURSOR,
};

/** The query of a legacy request for conversations (section 4.6 of the specification). */
export const legacyConversationParameters = z.object({
  created_since: legacyInstant.optional().meta({
    description: `${CREATED_SINCE}. Without any filter: the last 7 days`,
    examples: EXAMPLES,
  }),
  ...common,
  updated_since: legacyInstant.optional().meta({
    description: "Records updated at this time or later, in the order of their updates",
  }),
  updated_to: orAbsent(legacyInstant, {
    description: "Records updated earlier than this. Without it: 7 days after `updated_since`",
  }),
});

/** The query of a legacy request for messages (section 4.6 of the specification). */
export const legacyMessageParameters = z.object({
  created_since: legacyInstant.meta({ description: CREATED_SINCE, examples: EXAMPLES }),
  ...common,
  conversation_id: CONVERSATION_ID,
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
