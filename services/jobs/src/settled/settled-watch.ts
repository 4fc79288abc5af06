import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import type { WriterLeases } from "@conversation-export/queue";
import { createLoop, type Logger, type Metrics } from "@conversation-export/runtime";
import type { SettledStore, Watermarks } from "@conversation-export/warehouse";

export type SettledWatch = { start(): Promise<void>; stop(): Promise<void> };

/** Writers read ClickHouse's clock to the second; what was readable at an instant was stored before this. */
const CLOCKS_DIFFER: Micros = 5 * MICROS_IN_SECOND;

/** Watermarks as they were read at an instant of ClickHouse's clock. */
type Note = { readonly at: Micros; readonly watermarks: Watermarks };

/**
 * Advances the instant up to which readers of changes may read: no writer has or will ever have an instant of
 * upload before it that is not readable. Any number of processes may do so. An error leaves it as it is.
 */
export const createSettledWatch = (deps: {
  readonly leases: Pick<WriterLeases, "settledUntil">;
  readonly store: SettledStore;
  /**
   * An instant of upload that this process would use now, µs: writers keep theirs when a clock is set back.
   */
  readonly uploadTime: () => Micros;
  readonly intervalMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}): SettledWatch => {
  const { leases, store, log } = deps;
  const begun: Micros = deps.now() * 1000;
  let stored: Micros = 0;
  let loaded = false;
  let failing = false;
  /** Waits until everything that was readable at its instant is settled. */
  let note: Note | undefined;

  deps.metrics.gauge(
    "changes_settled_age_seconds",
    "Age of the instant up to which readers of changes may read; of the process while there is none",
    [],
    (gauge) => gauge.set(deps.now() / 1000 - (stored > 0 ? stored : begun) / MICROS_IN_SECOND),
  );

  const advance = async (): Promise<void> => {
    if (!loaded) {
      stored = Math.max(stored, (await store.load()).until);
      loaded = true;
    }
    if (note === undefined) {
      const { at, watermarks } = await store.watermarks();
      note = { at: Math.max(at, deps.uploadTime()), watermarks };
    }
    const byLeases = await leases.settledUntil(stored);
    if (byLeases === null) return;
    // Asked after the leases: the INSERTs of a writer whose lease has expired are among those that run.
    const until = Math.min(byLeases, (await store.oldestUpload()) ?? byLeases);
    if (until <= stored) return;
    // Of a former turn: whoever reads the watermarks finds at least the instant that they belong to.
    const isCovered = note.at + CLOCKS_DIFFER <= stored;
    await store.save({ until, watermarks: isCovered ? note.watermarks : {} });
    stored = until;
    if (isCovered) note = undefined;
  };

  const turn = async (): Promise<void> => {
    try {
      await advance();
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ err: error }, "the settled instant of changes stays as it is");
      failing = true;
    }
  };

  const loop = createLoop({ turn, pauseMs: deps.intervalMs });
  return {
    start: async () => loop.start(),
    stop: () => loop.stop(),
  };
};
