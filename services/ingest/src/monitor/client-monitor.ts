import { createLoop, type Logger } from "@conversation-export/runtime";
import type { UnregisteredClientStore } from "@conversation-export/warehouse";
import type { IngestMetrics } from "../ingest-metrics.ts";

export type ClientMonitor = ReturnType<typeof createClientMonitor>;

const PAUSE_MS = 30_000;
/** Further names show only in the metric. */
const MAX_NAMES = 1_000;

/** A misspelt client looks like a new one. */
export const createClientMonitor = (deps: {
  readonly store: Pick<UnregisteredClientStore, "add" | "registered">;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => number;
}) => {
  const { store, metrics, log, now } = deps;
  let registered: ReadonlySet<string> | undefined;
  let counts = new Map<string, number>();
  let isFailing = false;

  const count = (clientId: string, records: number): void => {
    const before = counts.get(clientId);
    if (before !== undefined || counts.size < MAX_NAMES) counts.set(clientId, (before ?? 0) + records);
  };

  const storeCounts = async (known: ReadonlySet<string>): Promise<void> => {
    const taken = counts;
    counts = new Map();
    const clients = Array.from(taken, ([clientId, records]) => ({ clientId, records })).filter(
      ({ clientId }) => !known.has(clientId),
    );
    if (clients.length === 0) return;
    try {
      await store.add(new Date(now()).toISOString().slice(0, 10), clients);
    } catch (error) {
      const later = counts;
      counts = taken;
      for (const [clientId, records] of later) count(clientId, records);
      throw error;
    }
  };

  const turn = async (): Promise<void> => {
    try {
      const known = await store.registered();
      registered = known;
      await storeCounts(known);
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        log.warn({ err: error }, "comparing the clients of events with the registered ones failed");
      isFailing = true;
    }
  };
  const loop = createLoop({ turn, pauseMs: PAUSE_MS });

  return {
    start: loop.start,
    /** Stores the latest counts. */
    stop: async (): Promise<void> => {
      await loop.stop();
      if (counts.size > 0) await turn();
    },
    note: (topic: string, clientId: string): void => {
      if (registered === undefined || registered.has(clientId)) return;
      metrics.unregistered.inc({ topic });
      count(clientId, 1);
    },
  };
};
