import { Readable } from "node:stream";
import { activeSpan, failSpan, type Span, startSpan, traceHeaders } from "@conversation-export/runtime";

type SpanExtra = { readonly http_headers?: Record<string, string> };

export type StatementSummary = { readonly operation: string; readonly table: string | undefined };

const TARGET = /\b(?:INTO|FROM|UPDATE|TABLE)\s+(?!\()([A-Za-z_]\w*)/i;
const COUNTS = ["read_rows", "read_bytes", "written_rows", "written_bytes"] as const;

/** No other text of a statement may appear in spans. */
export const summaryOf = (statement: string): StatementSummary => {
  const first = /[A-Za-z]+/.exec(statement)?.[0].toUpperCase() ?? "STATEMENT";
  return { operation: first === "WITH" ? "SELECT" : first, table: TARGET.exec(statement)?.[1] };
};

const noteCounts = (span: Span, summary: unknown): void => {
  if (typeof summary !== "object" || summary === null) return;
  for (const name of COUNTS) {
    const value = Number(Reflect.get(summary, name) ?? 0);
    if (value > 0) span.setAttribute(`clickhouse.${name}`, value);
  }
};

const endWith = (stream: Readable, span: Span): void => {
  const end = (): void => {
    if (stream.errored) failSpan(span, stream.errored);
    else if (!stream.readableEnded) span.addEvent("cancelled");
    span.end();
  };
  if (stream.closed) end();
  else stream.once("close", end);
};

/** The client's `tracer` sends no `traceparent`, splits queries and copies error messages, which may hold data. */
export const createStatementSpans = (url: string) => {
  const server = new URL(url);
  const database = decodeURIComponent(server.pathname.slice(1));
  const attributes = {
    "db.system.name": "clickhouse",
    ...(database !== "" && { "db.namespace": database }),
    "server.address": server.hostname,
    "server.port": Number(server.port) || (server.protocol === "https:" ? 443 : 80),
  };
  return {
    /** Within a recorded span. ClickHouse adds its own. A stream's span ends with it. */
    around: async <T>(
      { name, queryId }: { readonly name: string; readonly queryId: string },
      summarise: () => StatementSummary,
      send: (extra: SpanExtra) => Promise<T>,
    ): Promise<T> => {
      const parent = activeSpan();
      if (parent === undefined) return send({});
      const { operation, table } = summarise();
      const span = startSpan(
        table === undefined ? operation : `${operation} ${table}`,
        parent.spanContext(),
        {
          kind: "CLIENT",
          attributes: {
            ...attributes,
            "db.operation.name": operation,
            ...(table !== undefined && { "db.collection.name": table }),
            "conversation_export.statement": name,
            "clickhouse.query_id": queryId,
          },
        },
      );
      try {
        const answer = await send({ http_headers: traceHeaders(span) });
        const { stream, summary } = answer as { readonly stream?: unknown; readonly summary?: unknown };
        noteCounts(span, summary);
        if (stream instanceof Readable) endWith(stream, span);
        else span.end();
        return answer;
      } catch (error) {
        failSpan(span, error);
        span.end();
        throw error;
      }
    },
  };
};
