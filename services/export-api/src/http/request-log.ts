import { type Logger, withinSpan } from "@conversation-export/runtime";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { ExportMetrics } from "../export-metrics.ts";
import type { CallerOf } from "../admission/caller.ts";
import { beginRequestSpan, endRequestSpan, methodOf } from "./request-span.ts";

/** Possible attempts to get in. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 429]);

export const createRequestLog = (deps: {
  readonly log: Logger;
  readonly metrics: ExportMetrics;
  /** Monotonic milliseconds. */
  readonly clock: () => number;
  readonly callerOf: CallerOf;
}) => {
  const { log, metrics, clock, callerOf } = deps;

  const finish = (request: FastifyRequest, reply: FastifyReply): void => {
    const { facts, method } = request;
    const route = request.routeOptions.url ?? "unknown";
    const status = reply.raw.headersSent ? reply.raw.statusCode : 499;
    const seconds = (clock() - facts.startedAt) / 1000;
    metrics.requests.inc({ route, method: methodOf(request, "other"), status: String(status) });
    metrics.seconds.observe({ route }, seconds);
    if (facts.clientId !== undefined) metrics.bytes.inc({ route, client: facts.clientId }, facts.bytes);
    const { startedAt: _, firstByteAt, span, ...rest } = facts;
    log.info(
      {
        requestId: request.id,
        route,
        method,
        status,
        ms: Math.round(seconds * 1000),
        ...(firstByteAt !== undefined && { firstByteMs: Math.round(firstByteAt - facts.startedAt) }),
        ...rest,
        ...(REFUSALS.has(status) && { caller: callerOf(request.ip) }),
      },
      "request",
    );
    if (span !== undefined) endRequestSpan(span, status, facts);
  };

  return (request: FastifyRequest, reply: FastifyReply): void => {
    request.facts = { startedAt: clock(), bytes: 0, span: beginRequestSpan(request) };
    // Later, so that the handler has noted how its page ended.
    reply.raw.once("close", () =>
      setImmediate(() => withinSpan(request.facts.span, () => finish(request, reply))),
    );
  };
};
