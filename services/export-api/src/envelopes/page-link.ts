import {
  type CursorScope,
  decodePosition,
  encodePosition,
  formatTimestamp,
  formatTimestampZ,
  type LinkBounds,
  signedText,
} from "@conversation-export/domain";
import type { ApiClient, MessagePageQuery, PageEnd } from "@conversation-export/warehouse";
import { createCursors, type CursorSecrets } from "./cursor-signer.ts";
import { formatNaive } from "../parameters/instant-parameter.ts";
import type { PageRequest } from "../parameters/window-parameters.ts";
import { type QueryPairs, writeQuery } from "../parameters/query-string.ts";

export type PageLinks = {
  /** @throws ApiError 400 for the cursor of another request */
  query(client: ApiClient, endpoint: string, wanted: PageRequest): MessagePageQuery;
  next(client: ApiClient, endpoint: string, wanted: PageRequest, end: NextOf): string | null;
};

type NextOf = Pick<PageEnd, "next" | "pace">;

type LinkForm = {
  /** `given`: the client's lower bound. */
  readonly instant: (micros: number, given: string) => string;
  readonly query: (pairs: QueryPairs) => string;
};

const FORMS = {
  v2: { instant: formatTimestampZ, query: writeQuery },
  /** Timestamps in the client's own form; colons as `%3A`. */
  legacy: {
    instant: (micros, given) => {
      if (/z$/i.test(given)) return formatTimestampZ(micros);
      return /[+-]\d{2}(?::?\d{2})?$/.test(given) ? formatTimestamp(micros) : formatNaive(micros);
    },
    query: (pairs) =>
      pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&"),
  },
} as const satisfies Record<string, LinkForm>;

/** `advancing` links move the lower bound, for clients that take only that. */
export const createPageLinks = (
  deps: CursorSecrets & { readonly linkBounds: LinkBounds; readonly form: keyof typeof FORMS },
): PageLinks => {
  const cursors = createCursors(deps, { encode: encodePosition, decode: decodePosition, signed: signedText });
  const form = FORMS[deps.form];
  const boundsOf = (client: ApiClient): LinkBounds => client.linkBounds ?? deps.linkBounds;

  return {
    query: (client, endpoint, wanted) => {
      const { cursor, conversationId } = wanted;
      const from = cursor === undefined ? undefined : cursors.read(cursor, scopeOf(client, endpoint, wanted));
      return {
        clientId: client.clientId,
        since: wanted.since,
        to: wanted.to,
        pageSize: wanted.pageSize,
        wholeTies: boundsOf(client) === "advancing",
        ...(from && { after: { date: from.date, id: from.id } }),
        ...(from?.pace !== undefined && { pace: from.pace }),
        ...(conversationId !== undefined && { conversationId }),
      };
    },
    next: (client, endpoint, wanted, end) => {
      if (end.next === null) return null;
      const { next, pace } = end;
      const advancing = boundsOf(client) === "advancing";
      const withCursor = !(advancing && next.id === "");
      const since = advancing ? next.date : wanted.since;
      if (since >= wanted.to) return null;
      const scope = { ...scopeOf(client, endpoint, wanted), since };
      return form.query([
        [`${wanted.filter}_since`, advancing ? form.instant(since, wanted.sinceText) : wanted.sinceText],
        [`${wanted.filter}_to`, wanted.toText ?? form.instant(wanted.to, wanted.sinceText)],
        ...optional("page_size", wanted.pageSizeGiven ? String(wanted.pageSize) : undefined),
        ...optional("conversation_id", wanted.conversationId),
        ...optional(
          "cursor",
          withCursor ? cursors.write({ ...next, ...(pace !== undefined && { pace }) }, scope) : undefined,
        ),
      ]);
    },
  };
};

const optional = (name: string, value: string | undefined): QueryPairs =>
  value === undefined ? [] : [[name, value]];

const scopeOf = (client: ApiClient, endpoint: string, request: PageRequest): CursorScope => ({
  clientId: client.clientId,
  endpoint,
  filter: request.filter,
  conversationId: request.conversationId ?? null,
  since: request.since,
  to: request.to,
});
