import { hash } from "node:crypto";
import type { LinkBounds } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import { LRUCache } from "lru-cache";
import type { ExportMetrics } from "../export-metrics.ts";
import type { Call } from "../operations/endpoint.ts";
import type { PageRequest } from "../parameters/window-parameters.ts";

/** Without a warning. */
const USUAL_TIMES = 2;
const MAX_CLIENTS = 10_000;
const MAX_PAGES = 32;
const ROW_MS = 3_600_000;

const NOTICE_HEADER = "x-export-notice";

export type Repeats = {
  readonly headers: Readonly<Record<string, string>>;
  readonly end: (hasLink: boolean) => void;
};

export type NoteRepeats = (call: Call, list: string, wanted: PageRequest) => Repeats;

const NOTHING: Repeats = { headers: {}, end: () => {} };

/** Detects clients that read one page for ever because they take only the lower bound from links. */
export const createNoteRepeats = (deps: {
  readonly linkBounds: LinkBounds;
  readonly metrics: Pick<ExportMetrics, "repeatedPages">;
  readonly log: Logger;
  readonly clock: () => number;
}): NoteRepeats => {
  const { linkBounds, metrics, log, clock } = deps;
  const clients = new LRUCache<string, LRUCache<string, number>>({ max: MAX_CLIENTS });

  const timesOf = (clientId: string): LRUCache<string, number> => {
    const known = clients.get(clientId);
    if (known !== undefined) return known;
    const times = new LRUCache<string, number>({
      max: MAX_PAGES,
      ttl: ROW_MS,
      ttlResolution: 0,
      perf: { now: clock },
    });
    clients.set(clientId, times);
    return times;
  };

  return ({ client, request }, list, wanted) => {
    const { clientId } = client;
    if ((client.linkBounds ?? linkBounds) !== "same" || request.method !== "GET") return NOTHING;
    const { filter, since, to, pageSize, conversationId } = wanted;
    // Hashed: a conversation_id may be long.
    const page = hash("sha256", JSON.stringify([list, filter, since, to, pageSize, conversationId]));
    if (wanted.cursor !== undefined) {
      clients.peek(clientId)?.delete(page);
      return NOTHING;
    }
    const times = (clients.peek(clientId)?.get(page) ?? 0) + 1;
    const isRepeated = times > USUAL_TIMES;
    const end = (hasLink: boolean): void => {
      if (!hasLink) {
        clients.peek(clientId)?.delete(page);
        return;
      }
      timesOf(clientId).set(page, times);
      if (!isRepeated) return;
      metrics.repeatedPages.inc({ list, client: clientId });
      if (times === USUAL_TIMES + 1) {
        log.warn(
          { clientId, list, requestId: request.id, times },
          "client repeats a page and follows no link",
        );
      }
    };
    const notice =
      `this first page was sent ${times} times in a row: follow the link to the next page, ` +
      "or ask the operator for links of the style advancing";
    return { headers: isRepeated ? { [NOTICE_HEADER]: notice } : {}, end };
  };
};
