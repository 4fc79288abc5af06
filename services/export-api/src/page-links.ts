import type { CursorScope } from "@conversation-export/domain";
import type { ApiClient, MessagePageQuery, Page } from "@conversation-export/warehouse";
import { badRequest } from "./api-error.ts";
import type { CursorSigner } from "./cursor.ts";
import { type LinkBounds, type LinkForm, nextPageQuery } from "./next-page.ts";
import type { PageRequest } from "./parameters.ts";

/** From a request to the page it means, and from a page to the link behind it. `endpoint` keeps cursors apart. */
export type PageLinks = {
  /** Throws 400 for a cursor that was not made for this request. */
  query(client: ApiClient, endpoint: string, wanted: PageRequest): MessagePageQuery;
  /** The query of the link to the next page; null when there is none. */
  next(client: ApiClient, endpoint: string, wanted: PageRequest, page: Page): string | null;
};

/**
 * @param deps.linkBounds for clients that have no link style of their own
 * @param deps.form how links are written, if not as those of v2
 */
export const createPageLinks = (deps: {
  readonly cursors: CursorSigner;
  readonly linkBounds: LinkBounds;
  readonly form?: LinkForm;
}): PageLinks => {
  const { cursors } = deps;
  const styleOf = (client: ApiClient): LinkBounds => client.linkBounds ?? deps.linkBounds;

  return {
    query: (client, endpoint, wanted) => {
      const { cursor, conversationId } = wanted;
      const after =
        cursor === undefined ? undefined : cursors.open(scopeOf(client, endpoint, wanted), cursor);
      if (cursor !== undefined && after === undefined) {
        throw badRequest(["cursor: does not belong to this request"]);
      }
      return {
        clientId: client.clientId,
        since: wanted.since,
        to: wanted.to,
        pageSize: wanted.pageSize,
        wholeTies: styleOf(client) === "advancing",
        ...(after && { after }),
        ...(conversationId !== undefined && { conversationId }),
      };
    },
    next: (client, endpoint, wanted, page) =>
      nextPageQuery(
        wanted,
        page,
        styleOf(client),
        (bounds, position) => cursors.sign({ ...scopeOf(client, endpoint, wanted), ...bounds }, position),
        deps.form,
      ),
  };
};

const scopeOf = (client: ApiClient, endpoint: string, request: PageRequest): CursorScope => ({
  clientId: client.clientId,
  endpoint,
  filter: request.filter,
  conversationId: request.conversationId ?? null,
  since: request.since,
  to: request.to,
});
