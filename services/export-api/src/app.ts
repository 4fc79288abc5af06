import type { IncomingMessage, ServerResponse } from "node:http";
import { type Logger, ServiceError } from "@conversation-export/runtime";
import type { Reader } from "@conversation-export/warehouse";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { answerTo, badRequest, methodNotAllowed, renderError, routeMissing } from "./api-error.ts";
import { createAuthenticate } from "./authenticate.ts";
import { answerClientError } from "./client-error.ts";
import { createCursorSigner } from "./cursor.ts";
import type { ExportMetrics } from "./export-metrics.ts";
import type { LinkBounds } from "./next-page.ts";
import { createPageHandler, PAGE_ENDPOINTS, pathOf } from "./page-route.ts";
import { requestIdOf } from "./request-id.ts";
import { unwrapTarget } from "./service-address.ts";

export type AppDeps = {
  readonly reader: Reader;
  readonly log: Logger;
  readonly metrics: ExportMetrics;
  /** Milliseconds that never run backwards. */
  readonly clock: () => number;
  readonly cursorSecret: string;
  readonly previousCursorSecret?: string | undefined;
  readonly publicBaseUrl?: string | undefined;
  readonly linkBounds: LinkBounds;
  readonly keyCacheMs: number;
  readonly idleMs: number;
};

/** Bytes that may wait in the process for each slow reader. */
const SOCKET_BUFFER_BYTES = 256 * 1024;
/** Above the idle time-outs of common load balancers, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
const REQUEST_MS = 30_000;

const KNOWN_METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);

const routeOf = (request: FastifyRequest): string => request.routeOptions.url ?? "unknown";

const pathnameOf = (target: string): string => {
  const path = target.split("?", 1)[0] ?? "";
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
};

/** Builds the HTTP side of the service, ready for `listen` or `inject`. */
export const createApp = (deps: AppDeps): FastifyInstance => {
  const { log, metrics, clock } = deps;
  let closing = false;
  const methods = new Map<string, readonly string[]>();

  const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { answer, errorId } = answerTo(error);
    if (errorId !== undefined) {
      request.facts.errorId = errorId;
      metrics.errors.inc({ status: String(answer.status) });
      log.error({ err: error, errorId, requestId: request.id, status: answer.status }, "request failed");
    }
    // A buffer, since the framework would add a charset to JSON text.
    return reply
      .code(answer.status)
      .headers({ ...answer.headers, "content-type": "application/json" })
      .send(Buffer.from(renderError(answer)));
  };

  const begin = (request: FastifyRequest, reply: FastifyReply): void => {
    request.facts = { startedAt: clock(), bytes: 0 };
    reply.headers({ "x-request-id": request.id, "cache-control": "private, no-store" });
    // Later, so that the handler has noted how its page ended.
    reply.raw.once("close", () => setImmediate(finish, request, reply));
  };

  const finish = (request: FastifyRequest, reply: FastifyReply): void => {
    const { facts, method } = request;
    const route = routeOf(request);
    const status = reply.raw.headersSent ? reply.raw.statusCode : 499;
    const seconds = (clock() - facts.startedAt) / 1000;
    metrics.requests.inc({
      route,
      method: KNOWN_METHODS.has(method) ? method : "other",
      status: String(status),
    });
    metrics.seconds.observe({ route }, seconds);
    if (facts.clientId !== undefined) metrics.bytes.inc({ route, client: facts.clientId }, facts.bytes);
    const { startedAt: _, firstByteAt, ...rest } = facts;
    log.info(
      {
        requestId: request.id,
        route,
        method,
        status,
        ms: Math.round(seconds * 1000),
        ...(firstByteAt !== undefined && { firstByteMs: Math.round(firstByteAt - facts.startedAt) }),
        ...rest,
      },
      "request",
    );
    // A connection whose last request began before the close would else stay open until it times out.
    if (closing) app.server.closeIdleConnections();
  };

  const app = Fastify({
    logger: false,
    http: { highWaterMark: SOCKET_BUFFER_BYTES, requireHostHeader: false },
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    genReqId: (raw) => requestIdOf(raw.headers["x-request-id"]),
    rewriteUrl: (raw) => unwrapTarget(raw.url ?? "/"),
    // Parameters are read by the handlers, strictly and after the key.
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (error, request, reply) => {
      begin(request, reply);
      void sendError(error, request, reply);
    },
    clientErrorHandler: answerClientError,
  });
  app.decorateRequest("facts");
  app.setErrorHandler<FastifyError>((error, request, reply) => sendError(error, request, reply));
  app.server.on("checkExpectation", (raw: IncomingMessage, response: ServerResponse) => {
    app.server.emit("request", raw, response);
  });

  app.addHook("onRequest", async (request, reply) => {
    begin(request, reply);
    if (closing) throw new ServiceError("closing", "the service is stopping", { retryable: true });
    if (request.raw.httpVersion === "1.1" && request.headers.host === undefined) {
      throw badRequest(["Host: the header is required"]);
    }
    if (request.is404) {
      const allowed = methods.get(pathnameOf(request.url));
      throw allowed === undefined ? routeMissing() : methodNotAllowed(request.method, allowed);
    }
  });
  app.addHook("preClose", (done) => {
    closing = true;
    done();
  });

  const authenticate = createAuthenticate({
    reader: deps.reader,
    cacheMs: deps.keyCacheMs,
    clock,
    onLookup: (result) => metrics.keyLookups.inc({ result }),
  });
  const cursors = createCursorSigner({
    secret: deps.cursorSecret,
    previousSecret: deps.previousCursorSecret,
  });
  for (const endpoint of PAGE_ENDPOINTS) {
    const handler = createPageHandler(
      {
        reader: deps.reader,
        authenticate,
        cursors,
        metrics,
        log,
        clock,
        publicBaseUrl: deps.publicBaseUrl,
        linkBounds: deps.linkBounds,
        idleMs: deps.idleMs,
      },
      endpoint,
    );
    methods.set(pathOf(endpoint), ["GET", "HEAD"]);
    app.route({ method: ["GET", "HEAD"], url: pathOf(endpoint), handler });
  }
  return app;
};
