import type { IncomingMessage, ServerResponse } from "node:http";
import { type Logger, ServiceError, withinSpan } from "@conversation-export/runtime";
import underPressure from "@fastify/under-pressure";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { createAdmission } from "../admission/admission.ts";
import type { CallerOf } from "../admission/caller.ts";
import {
  answerTo,
  badRequest,
  contentTooLarge,
  methodNotAllowed,
  renderError,
  routeMissing,
} from "./api-error.ts";
import { answerClientError } from "./client-error.ts";
import type { Endpoint } from "../operations/endpoint.ts";
import type { ExportMetrics } from "../export-metrics.ts";
import { MAX_BODY_BYTES } from "./json-body.ts";
import { createKeptConnections } from "./kept-connections.ts";
import { lingerBeforeClose, takeWithin } from "./answer-end.ts";
import { createPathMethods } from "./path-methods.ts";
import { requestIdOf } from "./request-facts.ts";
import { createRequestLog } from "./request-log.ts";
import { unwrapTarget } from "./service-address.ts";

export type AppDeps = {
  readonly endpoints: readonly Endpoint[];
  readonly admit: ReturnType<typeof createAdmission>;
  readonly log: Logger;
  readonly metrics: ExportMetrics;
  /** Monotonic milliseconds. */
  readonly clock: () => number;
  readonly trustedProxies: readonly string[];
  /** Above this, 503; 0 for never. */
  readonly maxEventLoopDelayMs: number;
  readonly idleMs: number;
  /** Above half, connections without a key do not stay open. */
  readonly maxConnections: number;
  /** Under which callers also know the service. */
  readonly publicHost: string | undefined;
  readonly hstsSubDomains: boolean;
  readonly callerOf: CallerOf;
};

const SOCKET_BUFFER_BYTES = 256 * 1024;
/** Longer than load balancers wait, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** For a whole request, and for its header. */
const REQUEST_MS = 30_000;
const HEADERS_MS = 10_000;
const TIMEOUT_CHECK_MS = 2_000;
/** Larger rests of rejected bodies close the connection. */
const SMALL_BODY_BYTES = 64 * 1024;

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** A long id gets 404, not the router's error. */
const MAX_PARAM_LENGTH = 16_384;

const hasLargeBodyAhead = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > SMALL_BODY_BYTES);

/** Node keeps only the first; a proxy in front may have read another. */
const hostsOf = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host").length;

class OverloadError extends ServiceError {
  constructor() {
    super("overloaded", "the event loop is late", { retryable: true });
  }
}

export const createApp = (deps: AppDeps): FastifyInstance => {
  const { endpoints, admit, log, metrics, publicHost } = deps;
  const logRequest = createRequestLog(deps);
  const pathMethods = createPathMethods();
  const transportSecurity = `max-age=31536000${deps.hstsSubDomains ? "; includeSubDomains" : ""}`;

  const closeWhenCrowded = (request: FastifyRequest, reply: FastifyReply): void => {
    if (request.facts.clientId === undefined && connections.count() > deps.maxConnections / 2) {
      reply.header("connection", "close");
    }
  };

  const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { answer, errorId } = answerTo(error);
    if (errorId !== undefined) {
      request.facts.errorId = errorId;
      metrics.errors.inc({ status: String(answer.status) });
      withinSpan(request.facts.span, () =>
        log.error({ err: error, errorId, requestId: request.id, status: answer.status }, "request failed"),
      );
    }
    if (answer.headers["connection"] === "close" || hasLargeBodyAhead(request.raw)) {
      reply.header("connection", "close");
      lingerBeforeClose(request.raw);
    }
    // A buffer: Fastify adds a charset to JSON text.
    return reply
      .code(answer.status)
      .headers({ ...answer.headers, "content-type": "application/json" })
      .send(Buffer.from(renderError(answer)));
  };

  const begin = (request: FastifyRequest, reply: FastifyReply): void => {
    logRequest(request, reply);
    connections.begin(reply.raw);
    reply.headers({
      "x-request-id": request.id,
      "cache-control": "private, no-store",
      ...SECURITY_HEADERS,
      // Not for plain http (RFC 6797, 7.2).
      ...(request.protocol === "https" && { "strict-transport-security": transportSecurity }),
    });
  };

  const app = Fastify({
    logger: false,
    http: {
      highWaterMark: SOCKET_BUFFER_BYTES,
      requireHostHeader: false,
      headersTimeout: HEADERS_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    },
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    trustProxy: [...deps.trustedProxies],
    genReqId: (raw) => requestIdOf(raw.headers["x-request-id"]),
    // A target in absolute form names a host (RFC 9112, 3.2.2).
    rewriteUrl: (raw) => unwrapTarget(raw.url ?? "/", [publicHost, raw.headers.host]),
    // Operations read parameters themselves, after the key is checked.
    routerOptions: { querystringParser: () => ({}), maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (error, request, reply) => {
      begin(request, reply);
      // These answers pass no hook.
      closeWhenCrowded(request, reply);
      void sendError(error, request, reply);
    },
    clientErrorHandler: (error, socket) => {
      const response = connections.responseOn(socket);
      answerClientError(error, socket, response?.headersSent === true && !response.writableFinished);
    },
  });
  app.server.maxConnections = deps.maxConnections;
  const connections = createKeptConnections(app.server);
  app.server.on("drop", () => metrics.refusedConnections.inc());
  app.decorateRequest("facts");
  app.setErrorHandler<FastifyError>((error, request, reply) => sendError(error, request, reply));
  app.server.on("checkExpectation", (raw: IncomingMessage, response: ServerResponse) => {
    app.server.emit("request", raw, response);
  });
  app.server.on("checkContinue", (raw: IncomingMessage, response: ServerResponse) => {
    // No 100 Continue for a body that is too large.
    if (Number(raw.headers["content-length"] ?? 0) <= MAX_BODY_BYTES) response.writeContinue();
    app.server.emit("request", raw, response);
  });
  // Operations read bodies themselves, after the key is checked.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));

  app.addHook("onRequest", async (request, reply) => {
    begin(request, reply);
    if (request.raw.httpVersion === "1.1" && request.headers.host === undefined) {
      throw badRequest(["Host: the header is required"]);
    }
    if (hostsOf(request.raw) > 1) throw badRequest(["Host: the header is repeated"]);
    const announced = Number(request.headers["content-length"] ?? 0);
    if (announced > MAX_BODY_BYTES) throw contentTooLarge(MAX_BODY_BYTES, announced);
    if (request.is404) {
      const allowed = pathMethods.of(request.url);
      // A path with an encoded slash matches a pattern here, but not in the router.
      if (allowed === undefined || allowed.includes(request.method)) {
        throw routeMissing(pathMethods.closest(request.url));
      }
      throw methodNotAllowed(request.method, allowed);
    }
  });
  // Not for pages, which hijack their replies before.
  app.addHook("onSend", (request, reply, _payload, done) => {
    takeWithin(reply.raw, deps.idleMs);
    closeWhenCrowded(request, reply);
    done();
  });
  app.addHook("onRoute", ({ url, method }) => {
    pathMethods.add(url, typeof method === "string" ? [method] : method);
  });
  if (deps.maxEventLoopDelayMs > 0) {
    void app.register(underPressure, {
      maxEventLoopDelay: deps.maxEventLoopDelayMs,
      customError: OverloadError,
      exposeStatusRoute: false,
    });
  }
  for (const endpoint of endpoints) {
    const method = endpoint.method === "GET" ? ["GET", "HEAD"] : [endpoint.method];
    for (const url of endpoint.paths) app.route({ method, url, handler: admit(endpoint) });
  }
  return app;
};
