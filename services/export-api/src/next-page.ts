import { type CursorPosition, formatTimestampZ } from "@conversation-export/domain";
import type { Page } from "@conversation-export/warehouse";
import type { PageRequest } from "./parameters.ts";
import { type QueryPairs, writeQuery } from "./query-string.ts";

/**
 * `same`: the link repeats the bounds of the request and carries a cursor.
 * `advancing`: the lower bound moves behind the last record, for clients that take nothing else from the link.
 */
export type LinkBounds = "same" | "advancing";

/** How a link is written. */
export type LinkForm = {
  /** An instant that the client did not give itself, like `given`, one that it did. */
  readonly instant: (micros: number, given: string) => string;
  readonly query: (pairs: QueryPairs) => string;
};

const PLAIN_FORM: LinkForm = { instant: formatTimestampZ, query: writeQuery };

/**
 * The query of the link to the next page, or null when this page is the last one.
 * @param sign makes a cursor for a position between the bounds that the link carries
 */
export const nextPageQuery = (
  request: PageRequest,
  page: Pick<Page, "next" | "nextIsWhole">,
  style: LinkBounds,
  sign: (bounds: { since: number; to: number }, position: CursorPosition) => string,
  form: LinkForm = PLAIN_FORM,
): string | null => {
  const { next } = page;
  if (next === null) return null;
  const advanced = style === "advancing";
  const withCursor = !(advanced && page.nextIsWhole);
  const since = advanced ? (page.nextIsWhole ? next.date + 1 : next.date) : request.since;
  if (since >= request.to) return null;
  const pairs: QueryPairs = [
    [`${request.filter}_since`, advanced ? form.instant(since, request.sinceText) : request.sinceText],
    [`${request.filter}_to`, request.toText ?? form.instant(request.to, request.sinceText)],
    ...optional("page_size", request.pageSizeGiven ? String(request.pageSize) : undefined),
    ...optional("conversation_id", request.conversationId),
    ...optional("cursor", withCursor ? sign({ since, to: request.to }, next) : undefined),
  ];
  return form.query(pairs);
};

const optional = (name: string, value: string | undefined): QueryPairs =>
  value === undefined ? [] : [[name, value]];
