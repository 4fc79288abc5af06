import type { ServerResponse } from "node:http";
import { inSpan, withinSpan } from "@conversation-export/runtime";
import type { FastifyReply, FastifyRequest } from "fastify";
import { notAcceptable, notAuthorized } from "../http/api-error.ts";
import type { AuthThrottle } from "./auth-throttle.ts";
import { monitorAccess } from "./access-monitor.ts";
import type { Authenticate, FindAgain } from "./authenticate.ts";
import type { ClientBound } from "./client-bound.ts";
import type { Call, Endpoint } from "../operations/endpoint.ts";
import type { ExportMetrics } from "../export-metrics.ts";
import type { RateLimit } from "./rate-limit.ts";
import { PARQUET_TYPE, streamTypeOf, wantsParquetOnly } from "../formats/stream-type.ts";
import type { Slots } from "./slots.ts";
import type { UsedKeys } from "./used-keys.ts";

const closeSignal = (response: ServerResponse): AbortSignal => {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
};

export const createAdmission = (deps: {
  readonly authenticate: Authenticate;
  readonly findAgain: FindAgain;
  readonly askAgainMs: number;
  readonly authThrottle: AuthThrottle;
  readonly usedKeys: Pick<UsedKeys, "use">;
  readonly rateLimit: RateLimit;
  readonly slots: Readonly<Record<Endpoint["slot"], Slots>>;
  readonly bounds: Readonly<Record<"pages" | "streams", ClientBound>>;
  readonly metrics: ExportMetrics;
}) => {
  const { authenticate, findAgain, askAgainMs, authThrottle, usedKeys, rateLimit, slots, bounds, metrics } =
    deps;

  const serve = async (endpoint: Endpoint, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (endpoint.headers !== undefined) reply.headers(endpoint.headers(request));
    const client = await inSpan("authenticate", {}, () => authenticate(request.headers, request.ip));
    request.facts.clientId = client.clientId;
    request.facts.keyId = client.keyId;
    usedKeys.use(client.keyId);
    if (!client.scopes.includes(endpoint.scope)) {
      authThrottle.failed(request.ip);
      throw notAuthorized(endpoint.scope);
    }
    await inSpan("rate limit", {}, () => rateLimit.admit(client, endpoint.limit, reply));
    const { streams = [] } = endpoint;
    if (!streams.includes(PARQUET_TYPE) && wantsParquetOnly(request.raw)) throw notAcceptable();
    const access = monitorAccess({
      ask: async (fresh) => {
        const { scopes } = await findAgain(request.headers, fresh);
        if (!scopes.includes(endpoint.scope)) throw notAuthorized(endpoint.scope);
      },
      everyMs: askAgainMs,
    });
    try {
      await serveWatched(endpoint, { request, reply, client, access });
    } catch (error) {
      // Cancelled work fails with errors of its own.
      access.lost.throwIfAborted();
      throw error;
    } finally {
      access.end();
    }
  };

  const serveWatched = async (endpoint: Endpoint, admitted: Omit<Call, "signal">): Promise<void> => {
    const { request, reply, client, access } = admitted;
    const { streams = [] } = endpoint;
    const signal = AbortSignal.any([closeSignal(reply.raw), access.lost]);
    const call = { ...admitted, signal };
    const release = await inSpan("slot", {}, () => slots[endpoint.slot].take(client.clientId, signal));
    const isPage = endpoint.slot === "page";
    if (isPage) metrics.pagesInFlight.inc();
    const held: (() => void)[] = [];
    try {
      if (isPage) held.push(await bounds.pages.begin(client.clientId));
      if (streamTypeOf(request.raw, streams) !== undefined) {
        held.push(await bounds.streams.begin(client.clientId));
      }
      await endpoint.serve(call);
    } finally {
      if (isPage) metrics.pagesInFlight.dec();
      // Before the slot, so that the client's next request finds them free.
      for (const end of held) end();
      release();
    }
  };

  return (endpoint: Endpoint) =>
    async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      try {
        await withinSpan(request.facts.span, () => serve(endpoint, request, reply));
      } catch (error) {
        // The caller has gone: most likely an error of cancelling its query.
        if (!reply.raw.destroyed) throw error;
        request.facts.pageEnd = "client_gone";
      }
      if (!reply.sent) reply.hijack();
    };
};
