import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { Logger } from "@conversation-export/runtime";
import type { SweepBuffers } from "./buffer-sweep.ts";
import { chooseCoding, createEncoder } from "./compression.ts";
import type { Call } from "../operations/endpoint.ts";
import type { ExportMetrics } from "../export-metrics.ts";
import type { RequestFacts } from "../http/request-facts.ts";
import { type PageOutcome, streamPage } from "./stream-page.ts";

export type PageAnswer = {
  readonly contentType: string;
  readonly head: string;
  /** null: no query ran. */
  readonly records: Readable | null;
  /** Records so far; of a page 0 before its end. */
  readonly rows: () => number;
  readonly tail: () => string;
  readonly isCompressed?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
};

/** @throws only while nothing was sent; later failures reset the connection */
export type SendPage = (call: Call, answer: PageAnswer) => Promise<void>;

/** `idleMs`: without progress. */
export const createSendPage = (deps: {
  readonly metrics: ExportMetrics;
  readonly log: Logger;
  readonly clock: () => number;
  readonly idleMs: number;
  readonly sweep: SweepBuffers;
}): SendPage => {
  const { metrics, log, clock, idleMs, sweep } = deps;

  const noteOutcome = (facts: RequestFacts, requestId: string, outcome: PageOutcome): void => {
    facts.bytes = outcome.bytes;
    facts.pageEnd = outcome.end;
    if (outcome.end === "complete") return;
    metrics.brokenPages.inc({ reason: outcome.end });
    if (outcome.end === "client_gone" || outcome.end === "client_not_allowed") return;
    facts.errorId = randomUUID();
    log.error(
      { err: outcome.error, errorId: facts.errorId, requestId, reason: outcome.end, bytes: outcome.bytes },
      "page broken off",
    );
  };

  return async ({ request, reply, access }, answer) => {
    const { facts } = request;
    const response = reply.raw;
    const { head, records, tail } = answer;
    const bodyless = request.method === "HEAD" || records === null;
    const coding = answer.isCompressed === true ? null : chooseCoding(request.raw);

    const begin = (): void => {
      reply.hijack();
      facts.firstByteAt = clock();
      facts.span?.addEvent("first_byte");
      metrics.firstByteSeconds.observe(
        { route: request.routeOptions.url ?? "unknown" },
        (facts.firstByteAt - facts.startedAt) / 1000,
      );
      reply.headers({
        "content-type": answer.contentType,
        vary: "accept, accept-encoding",
        ...answer.headers,
      });
      if (coding !== null && records !== null) reply.header("content-encoding", coding);
      for (const [name, value] of Object.entries(reply.getHeaders())) response.setHeader(name, value ?? "");
      response.writeHead(200);
    };
    if (bodyless) {
      records?.on("error", () => {}).destroy();
      facts.rows = 0;
      begin();
      response.end(request.method === "HEAD" ? undefined : head + tail());
      return;
    }
    const outcome = await streamPage({
      response,
      records,
      head,
      tail,
      encoder: coding === null ? undefined : createEncoder(coding),
      idleMs,
      lost: access.lost,
      sweep,
      begin,
    });
    facts.rows = answer.rows();
    noteOutcome(facts, request.id, outcome);
  };
};
