import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { ClickHouseClient } from "@clickhouse/client";
import { activeSpan, failSpan, type Span, startSpan, traceHeaders } from "@conversation-export/runtime";

/** What each statement carries besides itself. */
type Extra = { readonly query_id?: string; readonly http_headers?: Record<string, string> };
type Answer = {
  readonly summary?: Readonly<Record<string, string>> | undefined;
  readonly stream?: unknown;
};

const TARGET = /\b(?:INTO|FROM|UPDATE|TABLE)\s+(?!\()([A-Za-z_]\w*)/i;
const COUNTS = ["read_rows", "read_bytes", "written_rows", "written_bytes"] as const;

/** What a statement does, and the first table that it names: nothing else of it leaves. */
export const summaryOf = (statement: string): { operation: string; table: string | undefined } => {
  const first = /[A-Za-z]+/.exec(statement)?.[0].toUpperCase() ?? "STATEMENT";
  return { operation: first === "WITH" ? "SELECT" : first, table: TARGET.exec(statement)?.[1] };
};

const noteCounts = (span: Span, summary: Answer["summary"]): void => {
  for (const name of COUNTS) {
    const value = Number(summary?.[name] ?? 0);
    if (value > 0) span.setAttribute(`clickhouse.${name}`, value);
  }
};

/** Ends the span with the stream, however that ends. */
const endWith = (stream: Readable, span: Span): void => {
  stream.once("close", () => {
    if (stream.errored) failSpan(span, stream.errored);
    else if (!stream.readableEnded) span.addEvent("cancelled");
    span.end();
  });
};

/**
 * Makes each statement of a client a span, when it is sent within one that is recorded, and hands it on to ClickHouse,
 * whose own spans follow. The span of `exec` ends with the stream of its answer.
 */
export const traceStatements = (
  client: ClickHouseClient,
  server: { readonly url: URL; readonly database: string },
): ClickHouseClient => {
  const attributes = {
    "db.system.name": "clickhouse",
    ...(server.database !== "" && { "db.namespace": server.database }),
    "server.address": server.url.hostname,
    "server.port": Number(server.url.port) || (server.url.protocol === "https:" ? 443 : 80),
  };

  const traced = async <T>(
    { operation, table }: { operation: string; table: string | undefined },
    parent: Span,
    given: Extra,
    send: (extra: Extra) => Promise<T>,
  ): Promise<T> => {
    const queryId = given.query_id ?? randomUUID();
    const span = startSpan(table === undefined ? operation : `${operation} ${table}`, parent.spanContext(), {
      kind: "CLIENT",
      attributes: {
        ...attributes,
        "db.operation.name": operation,
        ...(table !== undefined && { "db.collection.name": table }),
        "clickhouse.query_id": queryId,
      },
    });
    try {
      const answer = await send({
        query_id: queryId,
        http_headers: { ...given.http_headers, ...traceHeaders(span) },
      });
      const { stream, summary } = answer as Answer;
      noteCounts(span, summary);
      if (isReadable(stream)) endWith(stream, span);
      else span.end();
      return answer;
    } catch (error) {
      failSpan(span, error);
      span.end();
      throw error;
    }
  };

  const { query, exec, insert, command } = client;
  const around = <P extends Extra & { readonly query: string }, T>(
    send: (params: P) => Promise<T>,
  ): ((params: P) => Promise<T>) => {
    return (params) => {
      const parent = activeSpan();
      if (parent === undefined) return send.call(client, params);
      return traced(summaryOf(params.query), parent, params, (extra) =>
        send.call(client, { ...params, ...extra }),
      );
    };
  };
  client.query = around(query as never) as typeof query;
  client.exec = around(exec);
  client.command = around(command);
  client.insert = (params) => {
    const parent = activeSpan();
    if (parent === undefined) return insert.call(client, params);
    return traced({ operation: "INSERT", table: params.table }, parent, params, (extra) =>
      insert.call(client, { ...params, ...extra }),
    );
  };
  return client;
};

const isReadable = (value: unknown): value is Readable =>
  typeof value === "object" && value !== null && "once" in value && "readableEnded" in value;
