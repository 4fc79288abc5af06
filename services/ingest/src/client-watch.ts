import { createLoop, type Logger } from "@conversation-export/runtime";
import type { UnregisteredClientWriter } from "@conversation-export/warehouse";
import type { IngestMetrics } from "./ingest-metrics.ts";

/** Counts the records of clients that are not registered: a wrong name looks like a new client. */
export type ClientWatch = {
  start(): Promise<void>;
  stop(): Promise<void>;
  note(topic: string, clientId: string): void;
};

const PAUSE_MS = 30_000;
/** So many names are kept between two turns; the metric counts the records of all. */
const MAX_NAMES = 1_000;

/** @param deps.now milliseconds since the epoch */
export const createClientWatch = (deps: {
  readonly store: UnregisteredClientWriter;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => number;
}): ClientWatch => {
  const { store, metrics, log, now } = deps;
  let registered: ReadonlySet<string> | undefined;
  let counts = new Map<string, number>();
  let isFailing = false;

  const turn = async (): Promise<void> => {
    try {
      const known = await store.registered();
      registered = known;
      const clients = Array.from(counts, ([clientId, records]) => ({ clientId, records })).filter(
        ({ clientId }) => !known.has(clientId),
      );
      counts = new Map();
      if (clients.length > 0) await store.add(new Date(now()).toISOString().slice(0, 10), clients);
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        log.warn({ err: error }, "comparing the clients of events with the registered ones failed");
      isFailing = true;
    }
  };
  const loop = createLoop({ turn, pauseMs: PAUSE_MS });

  return {
    start: () => {
      loop.start();
      return Promise.resolve();
    },
    stop: () => loop.stop(),
    note: (topic, clientId) => {
      if (registered === undefined || registered.has(clientId)) return;
      metrics.unregistered.inc({ topic });
      const count = counts.get(clientId);
      if (count !== undefined || counts.size < MAX_NAMES) counts.set(clientId, (count ?? 0) + 1);
    },
  };
};
