import { z } from "zod";
import { instant, orAbsent } from "./instant-parameter.ts";
import {
  CONVERSATION_ID,
  CURSOR,
  filterProblems,
  MAX_PAGE_SIZE,
  type PageRequestResult,
  readParameters,
  toPageRequest,
  wholeNumber,
} from "./parameters.ts";

const MIN_PAGE_SIZE = 100;

const common = {
  created_to: orAbsent(instant, {
    description:
      "Records created earlier than this. Without it: 7 days after `created_since`. Needs `created_since`",
    examples: ["2026-10-08T00:00:00Z"],
  }),
  page_size: wholeNumber(MIN_PAGE_SIZE, MAX_PAGE_SIZE, MAX_PAGE_SIZE)
    .optional()
    .meta({ description: "The largest number of records in a page", examples: [1000] }),
  cursor: CURSOR,
};

const CREATED_SINCE = "Records created at this time or later";
const SINCE = "2026-10-01T00:00:00Z";

/** The query of a request for conversations (section 4.1 of the specification). */
export const conversationParameters = z.object({
  created_since: instant.optional().meta({
    description: `${CREATED_SINCE}. Either this or \`updated_since\` is required; they exclude each other`,
    examples: [SINCE],
    // Scalar leaves optional parameters out of a request that is tried, and this one needs one of the two.
    param: { examples: { default: { value: SINCE, "x-disabled": false } } },
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
  conversation_id: CONVERSATION_ID,
});

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
