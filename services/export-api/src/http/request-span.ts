import { failSpan, isTracing, readTraceParent, type Span, startSpan } from "@conversation-export/runtime";
import type { FastifyRequest } from "fastify";
import type { RequestFacts } from "./request-facts.ts";

const KNOWN_METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);

export const methodOf = ({ method }: { readonly method: string }, other: string): string =>
  KNOWN_METHODS.has(method) ? method : other;

/** Ignores `tracestate`: arbitrary text from outside. */
export const beginRequestSpan = (request: FastifyRequest): Span | undefined => {
  if (!isTracing()) return undefined;
  const { traceparent } = request.headers;
  const parent = typeof traceparent === "string" ? readTraceParent(traceparent) : undefined;
  const route = request.routeOptions.url;
  const method = methodOf(request, "HTTP");
  const span = startSpan(route === undefined ? method : `${method} ${route}`, parent ?? null, {
    kind: "SERVER",
    attributes: {
      "http.request.method": methodOf(request, "_OTHER"),
      ...(route !== undefined && { "http.route": route }),
      "url.scheme": request.protocol,
      "network.protocol.version": request.raw.httpVersion,
      "conversation_export.request_id": request.id,
    },
  });
  return span.isRecording() ? span : undefined;
};

export const endRequestSpan = (span: Span, status: number, facts: RequestFacts): void => {
  const { clientId, bytes, rows, pageEnd, errorId } = facts;
  span.setAttributes({
    "http.response.status_code": status,
    "http.response.body.size": bytes,
    ...(clientId !== undefined && { "conversation_export.client_id": clientId }),
    ...(rows !== undefined && { "conversation_export.rows": rows }),
    ...(pageEnd !== undefined && { "conversation_export.page_end": pageEnd }),
    ...(errorId !== undefined && { "conversation_export.error_id": errorId }),
  });
  if (status >= 500) failSpan(span, String(status));
  else if (pageEnd !== undefined && pageEnd !== "complete") failSpan(span, pageEnd);
  span.end();
};
