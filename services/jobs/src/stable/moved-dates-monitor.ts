import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import type { Exclusive } from "@conversation-export/queue";
import { createLoop, type Logger, type Loop, type Metrics } from "@conversation-export/runtime";
import type { MovedDates, StableReader } from "@conversation-export/warehouse";

const NOTING = "moved-dates";

/** While it fails, pages look up more. */
export const createMovedDatesMonitor = (deps: {
  readonly dates: MovedDates;
  readonly stable: StableReader;
  readonly exclusive: Pick<Exclusive, "unlessTaken">;
  readonly intervalMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
}): Loop => {
  const { dates, stable, exclusive, log, now } = deps;
  const begun: Micros = now() * 1_000;
  let known: Micros = 0;
  const stopping = new AbortController();

  deps.metrics.gauge(
    "conversation_export_moved_records_known_age_seconds",
    "Age of the instant before which the dates of records with several are known; of the process while there is none",
    [],
    (gauge) => gauge.set(now() / 1_000 - (known > 0 ? known : begun) / MICROS_IN_SECOND),
  );

  const turn = async (): Promise<void> => {
    try {
      await exclusive.unlessTaken(NOTING, stopping.signal, async (signal) =>
        dates.note((await stable.load()).until, signal),
      );
      known = await dates.known();
    } catch (error) {
      if (!stopping.signal.aborted) log.warn({ err: error }, "recording former dates failed");
    }
  };

  const loop = createLoop({ turn, pauseMs: deps.intervalMs });
  return {
    start: loop.start,
    stop: () => {
      stopping.abort();
      return loop.stop();
    },
  };
};
