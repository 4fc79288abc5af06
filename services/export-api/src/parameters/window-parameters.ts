import { MICROS_IN_DAY } from "@conversation-export/domain";
import { z } from "zod";
import {
  type Bound,
  clampInstant,
  formatNaive,
  instant,
  legacyInstant,
  orAbsent,
} from "./instant-parameter.ts";
import { CURSOR, MAX_PAGE_SIZE, readParameters, wholeNumber } from "./parameters.ts";

/** Instants are µs, clamped to the service's range. */
export type PageRequest = {
  readonly filter: "created" | "updated";
  readonly since: number;
  readonly to: number;
  /** As given; a link repeats them. */
  readonly sinceText: string;
  readonly toText: string | undefined;
  readonly pageSize: number;
  readonly pageSizeGiven: boolean;
  readonly conversationId: string | undefined;
  readonly cursor: string | undefined;
};

export type PageRequestResult = { request: PageRequest } | { problems: readonly string[] };

/** In µs. */
const DEFAULT_WINDOW = 7 * MICROS_IN_DAY;

const toPageRequest = (
  filter: PageRequest["filter"],
  bounds: { since: Bound; to: Bound | undefined },
  rest: { page_size?: number | undefined; conversation_id?: string | undefined; cursor?: string | undefined },
): PageRequest => ({
  filter,
  // Clients compute bounds such as now - 365 days.
  since: clampInstant(bounds.since.micros),
  to: clampInstant(bounds.to?.micros ?? bounds.since.micros + DEFAULT_WINDOW),
  sinceText: bounds.since.text,
  toText: bounds.to?.text,
  pageSize: rest.page_size ?? MAX_PAGE_SIZE,
  pageSizeGiven: rest.page_size !== undefined,
  conversationId: rest.conversation_id,
  cursor: rest.cursor,
});

const FILTERS = ["created_since", "created_to", "updated_since", "updated_to"];

const filterProblems = (given: ReadonlySet<string>): string[] => {
  const problems: string[] = [];
  const names = [...given].filter((name) => FILTERS.includes(name));
  if (new Set(names.map((name) => name.split("_", 1)[0])).size > 1) {
    problems.push(`${names.join(", ")}: created and updated filters exclude each other`);
  }
  for (const family of ["created", "updated"]) {
    if (given.has(`${family}_to`) && !given.has(`${family}_since`)) {
      problems.push(`${family}_to: needs ${family}_since`);
    }
  }
  return problems;
};

type Dialect = {
  readonly instant: typeof instant;
  readonly pageSize: { readonly least: number; readonly example: number };
  readonly since: { readonly conversations: z.GlobalMeta; readonly messages: z.GlobalMeta };
  readonly needs: (since: string) => string;
  readonly to?: { readonly examples: string[] };
  /** Without a filter: the last 7 days. */
  readonly isOpen: boolean;
};

/** `now` in µs. */
const windowsOf = ({ instant: bound, pageSize, since, needs, to, isOpen }: Dialect) => {
  const earlierThan = (family: string, more?: Dialect["to"]) =>
    orAbsent(bound, {
      description: `Records ${family} earlier than this. Without it: 7 days after \`${family}_since\`${needs(`${family}_since`)}`,
      ...more,
    });
  const common = {
    created_to: earlierThan("created", to),
    page_size: wholeNumber(pageSize.least, MAX_PAGE_SIZE, MAX_PAGE_SIZE)
      .optional()
      .meta({ description: "The largest number of records in a page", examples: [pageSize.example] }),
    cursor: CURSOR,
  };
  const conversations = z.object({
    created_since: bound.optional().meta(since.conversations),
    ...common,
    updated_since: bound.optional().meta({
      description: "Records updated at this time or later, in the order of their updates",
    }),
    updated_to: earlierThan("updated"),
  });
  const messages = z.object({
    created_since: bound.meta(since.messages),
    ...common,
    conversation_id: z
      .string()
      .nullish()
      .meta({ description: "Only messages of this conversation", examples: ["64f1c0ffee64f1c0ffee64f1"] }),
  });

  const naive = (micros: number): Bound => ({ micros, text: formatNaive(micros) });
  return {
    conversations: {
      query: conversations,
      read: (target: string, now: number): PageRequestResult => {
        const { values, given, problems } = readParameters(conversations, target);
        problems.push(...filterProblems(given));
        if (!isOpen && FILTERS.every((name) => !given.has(name))) {
          problems.push("created_since, updated_since: one of them is required");
        }
        if (problems.length > 0) return { problems };
        const { created_since: created, created_to, updated_since: updated, updated_to } = values;
        if (updated !== undefined) {
          return { request: toPageRequest("updated", { since: updated, to: updated_to }, values) };
        }
        const bounds =
          created === undefined
            ? { since: naive(now - DEFAULT_WINDOW), to: naive(now) }
            : { since: created, to: created_to };
        return { request: toPageRequest("created", bounds, values) };
      },
    },
    messages: {
      query: messages,
      read: (target: string): PageRequestResult => {
        const { values, problems } = readParameters(messages, target);
        const { created_since: created, created_to } = values;
        if (problems.length > 0 || created === undefined) return { problems };
        return { request: toPageRequest("created", { since: created, to: created_to }, values) };
      },
    },
  };
};

const CREATED = "Records created at this time or later";
const SINCE = "2026-10-01T00:00:00Z";

/** Specification, sections 4.1 and 4.2. */
export const WINDOWS = windowsOf({
  instant,
  pageSize: { least: 100, example: 1000 },
  since: {
    conversations: {
      description: `${CREATED}. Either this or \`updated_since\` is required; they exclude each other`,
      examples: [SINCE],
      // Scalar leaves out optional parameters, but one of the two is needed.
      param: { examples: { default: { value: SINCE, "x-disabled": false } } },
    },
    messages: { description: CREATED, examples: ["2026-10-01T00:00:00.123456Z"] },
  },
  needs: (since) => `. Needs \`${since}\``,
  to: { examples: ["2026-10-08T00:00:00Z"] },
  isOpen: false,
});

const LEGACY_CREATED = `${CREATED}; without an offset it means UTC`;
const LEGACY_EXAMPLES = ["2023-06-28T17:59:28.201000"];

/** Specification, sections 4.6 and 9. */
export const LEGACY_WINDOWS = windowsOf({
  instant: legacyInstant,
  pageSize: { least: 1, example: 100 },
  since: {
    conversations: {
      description: `${LEGACY_CREATED}. Without any filter: the last 7 days`,
      examples: LEGACY_EXAMPLES,
    },
    messages: { description: LEGACY_CREATED, examples: LEGACY_EXAMPLES },
  },
  needs: () => "",
  isOpen: true,
});
