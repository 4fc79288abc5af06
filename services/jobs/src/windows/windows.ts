import {
  type Micros,
  MICROS_IN_SECOND,
  parseTimestamp,
  updateWindows,
  WINDOW_STATES,
} from "@conversation-export/domain";
import {
  type Exclusive,
  type JobHandler,
  type WindowsData,
  windowsJob,
  type WindowsResult,
} from "@conversation-export/queue";
import type { Metrics } from "@conversation-export/runtime";
import type { StableReader, WindowStore } from "@conversation-export/warehouse";
import { LEDGER } from "../process/locks.ts";

export type WindowsDeps = {
  readonly store: WindowStore;
  readonly stable: StableReader;
  readonly exclusive: Pick<Exclusive, "run">;
  readonly windowSeconds: number;
  /** After its end. */
  readonly graceSeconds: number;
  readonly lookback: number;
  /** µs since the epoch */
  readonly now: () => Micros;
};

export const createWindows = (deps: WindowsDeps): JobHandler<WindowsData, WindowsResult> => {
  const length = deps.windowSeconds * MICROS_IN_SECOND;

  /** By default the first that may have changed. */
  const firstWindow = async (data: WindowsData): Promise<Micros> => {
    if (data.since !== null) {
      const since = parseTimestamp(data.since) ?? 0;
      return since - (since % length);
    }
    const { last, open } = await deps.store.edges();
    return last === null ? 0 : Math.max(0, (open ?? last) - deps.lookback * length);
  };

  return {
    type: windowsJob,
    run: ({ data, signal: stop, log }) =>
      deps.exclusive.run(LEDGER, stop, async (signal) => {
        const since = await firstWindow(data);
        // Before the count, which may miss batches in flight.
        const now = deps.now();
        const { until } = await deps.stable.load();
        const counted = await deps.store.count(since, signal);
        const stored = await deps.store.list({ since });
        const changes = updateWindows({
          stored,
          counted,
          now,
          length,
          grace: deps.graceSeconds * MICROS_IN_SECOND,
          oldestUpload: until,
        });
        signal.throwIfAborted();
        await deps.store.save(changes.lines);
        const windows = new Set([...stored, ...counted].map(({ start }) => start)).size;
        const { opened, closed, reopened } = changes;
        if (reopened > 0) log.warn({ reopened }, "rows came late into closed upload windows");
        return { counted: windows, opened, closed, reopened };
      }),
  };
};

/** Without an answer the last values stay. */
export const registerWindowMetrics = (metrics: Metrics, store: WindowStore): void => {
  metrics.gauge(
    "conversation_export_upload_windows",
    "lines of the ledger of upload windows, one for each window and table",
    ["state"],
    async (gauge) => {
      const counts = await store.countStates().catch(() => null);
      if (counts !== null) for (const state of WINDOW_STATES) gauge.set({ state }, counts[state]);
    },
  );
};
