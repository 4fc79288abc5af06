import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { CursorScope } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import type { ApiClient, MessagePageQuery, Page, Reader } from "@conversation-export/warehouse";
import type { FastifyReply, FastifyRequest } from "fastify";
import { badRequest, notAuthorized } from "./api-error.ts";
import type { Authenticate } from "./authenticate.ts";
import type { CursorSigner } from "./cursor.ts";
import type { ExportMetrics } from "./export-metrics.ts";
import { type LinkBounds, nextPageQuery } from "./next-page.ts";
import {
  type PageRequest,
  type PageRequestResult,
  readConversationParameters,
  readMessageParameters,
} from "./parameters.ts";
import type { RequestFacts } from "./request-facts.ts";
import { API_PREFIX, serviceAddress } from "./service-address.ts";
import { type PageOutcome, streamPage } from "./stream-page.ts";

const EXPORT_SCOPE = "export";

/** One export operation: its place behind the service address, its parameters and its query. */
export type PageEndpoint = {
  readonly name: string;
  readonly path: string;
  readonly readParameters: (target: string) => PageRequestResult;
  readonly readPage: (
    reader: Reader,
    filter: PageRequest["filter"],
    query: MessagePageQuery,
  ) => Promise<Page>;
};

export const PAGE_ENDPOINTS: readonly PageEndpoint[] = [
  {
    name: "conversations",
    path: "/v2/export/conversations",
    readParameters: readConversationParameters,
    readPage: (reader, filter, query) =>
      filter === "created" ? reader.conversationsByCreation(query) : reader.conversationsByUpdate(query),
  },
  {
    name: "messages",
    path: "/v2/export/messages",
    readParameters: readMessageParameters,
    readPage: (reader, _filter, query) => reader.messagesByCreation(query),
  },
];

export type PageRouteDeps = {
  readonly reader: Reader;
  readonly authenticate: Authenticate;
  readonly cursors: CursorSigner;
  readonly metrics: ExportMetrics;
  readonly log: Logger;
  readonly clock: () => number;
  readonly publicBaseUrl: string | undefined;
  /** For clients that have no link style of their own. */
  readonly linkBounds: LinkBounds;
  /** A page without progress for so long is given up. */
  readonly idleMs: number;
};

const HEAD = '{"data":[';
const tailOf = (link: string | null): string => `],"meta":{"next_page_uri":${JSON.stringify(link)}}}`;

/** A signal that aborts when the response closes before its end. */
const closeSignal = (response: ServerResponse): AbortSignal => {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
};

/** The handler of GET and HEAD for one export operation (sections 4.1 to 4.3 of the specification). */
export const createPageHandler = (deps: PageRouteDeps, endpoint: PageEndpoint) => {
  const { reader, authenticate, cursors, metrics, log, clock } = deps;

  const queryFor = (client: ApiClient, request: PageRequest, style: LinkBounds, signal: AbortSignal) => {
    const scope = scopeOf(client, endpoint, request);
    const after = request.cursor === undefined ? undefined : cursors.open(scope, request.cursor);
    if (request.cursor !== undefined && after === undefined) {
      throw badRequest(["cursor: does not belong to this request"]);
    }
    return {
      clientId: client.clientId,
      since: request.since,
      to: request.to,
      pageSize: request.pageSize,
      wholeTies: style === "advancing",
      signal,
      ...(after && { after }),
      ...(request.conversationId !== undefined && { conversationId: request.conversationId }),
    };
  };

  const linkFor = (
    request: FastifyRequest,
    client: ApiClient,
    wanted: PageRequest,
    style: LinkBounds,
    page: Page,
  ) => {
    const query = nextPageQuery(wanted, page, style, (bounds, position) =>
      cursors.sign({ ...scopeOf(client, endpoint, wanted), ...bounds }, position),
    );
    if (query === null) return null;
    return `${serviceAddress(request.raw, deps.publicBaseUrl)}${endpoint.path}?${query}`;
  };

  const noteOutcome = (facts: RequestFacts, requestId: string, outcome: PageOutcome): void => {
    facts.bytes = outcome.bytes;
    facts.pageEnd = outcome.end;
    if (outcome.end === "complete") return;
    metrics.brokenPages.inc({ reason: outcome.end });
    if (outcome.end === "client_gone") return;
    facts.errorId = randomUUID();
    log.error(
      { err: outcome.error, errorId: facts.errorId, requestId, reason: outcome.end, bytes: outcome.bytes },
      "page broken off",
    );
  };

  const servePage = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { facts, raw } = request;
    const response = reply.raw;
    const client = await authenticate(request.headers.authorization);
    if (!client.scopes.includes(EXPORT_SCOPE)) throw notAuthorized(EXPORT_SCOPE);
    facts.clientId = client.clientId;
    const result = endpoint.readParameters(raw.url ?? "");
    if ("problems" in result) throw badRequest(result.problems);
    const wanted = result.request;
    const style = client.linkBounds ?? deps.linkBounds;
    const signal = closeSignal(response);
    const query = queryFor(client, wanted, style, signal);
    const page = wanted.since < wanted.to ? await endpoint.readPage(reader, wanted.filter, query) : undefined;
    const link = page === undefined ? null : linkFor(request, client, wanted, style, page);
    facts.rows = page?.rows ?? 0;

    const begin = (): void => {
      reply.hijack();
      facts.firstByteAt = clock();
      metrics.firstByteSeconds.observe(
        { route: pathOf(endpoint) },
        (facts.firstByteAt - facts.startedAt) / 1000,
      );
      for (const [name, value] of Object.entries(reply.getHeaders())) response.setHeader(name, value ?? "");
      response.setHeader("content-type", "application/json");
      if (link !== null) response.setHeader("link", `<${link}>; rel="next"`);
      response.writeHead(200);
    };
    if (request.method === "HEAD" || page === undefined) {
      page?.records.on("error", () => {}).destroy();
      begin();
      response.end(request.method === "HEAD" ? undefined : HEAD + tailOf(link));
      return;
    }
    const outcome = await streamPage({
      response,
      records: page.records,
      head: HEAD,
      tail: tailOf(link),
      idleMs: deps.idleMs,
      begin,
    });
    noteOutcome(facts, request.id, outcome);
  };

  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    metrics.pagesInFlight.inc();
    try {
      await servePage(request, reply);
    } catch (error) {
      // Nobody is left to answer, and the error is most likely our own cancelling.
      if (!reply.raw.destroyed) throw error;
      request.facts.pageEnd = "client_gone";
    } finally {
      metrics.pagesInFlight.dec();
    }
    if (!reply.sent) reply.hijack();
  };
};

const scopeOf = (client: ApiClient, endpoint: PageEndpoint, request: PageRequest): CursorScope => ({
  clientId: client.clientId,
  endpoint: endpoint.name,
  filter: request.filter,
  conversationId: request.conversationId ?? null,
  since: request.since,
  to: request.to,
});

/** The whole path of an endpoint on this service. */
export const pathOf = (endpoint: PageEndpoint): string => API_PREFIX + endpoint.path;
