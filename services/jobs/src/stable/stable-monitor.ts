import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { createLoop, type Logger, type Loop, type Metrics, ServiceError } from "@conversation-export/runtime";
import type { Coordination, StableStore, Watermarks } from "@conversation-export/warehouse";

/** Announced stamps stay this far back, so that most batches end before. */
const BEHIND: Micros = 2 * MICROS_IN_SECOND;
/** A clock further ahead is not announced: all other INSERTs would be rejected for so long. */
const MAX_AHEAD: Micros = 60 * MICROS_IN_SECOND;
/** Replicas' clocks differ by less; rows readable at an instant have stamps before this. */
const CLOCKS_DIFFER: Micros = 5 * MICROS_IN_SECOND;

type Note = { readonly at: Micros; readonly watermarks: Watermarks };

/** Any number of processes may run it (docs/internals.md). */
export const createStableMonitor = (deps: {
  readonly coordination: Pick<Coordination, "look" | "announce" | "running">;
  readonly store: StableStore;
  readonly intervalMs: number;
  /** For tests; µs. */
  readonly behind?: Micros;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
}): Loop => {
  const { coordination, store, log, behind = BEHIND } = deps;
  const begun: Micros = deps.now() * 1000;
  let stored: Micros = 0;
  let loaded = false;
  let failing = false;
  /** Rows may carry the latest instant shown, although the clock was set back. */
  let latest: Micros = 0;
  /** Waits until everything readable at its instant is stable. */
  let note: Note | undefined;

  deps.metrics.gauge(
    "conversation_export_changes_stable_age_seconds",
    "Age of the instant up to which readers of changes may read; of the process while there is none",
    [],
    (gauge) => gauge.set(deps.now() / 1000 - (stored > 0 ? stored : begun) / MICROS_IN_SECOND),
  );

  const advance = async (): Promise<void> => {
    if (!loaded) {
      stored = Math.max(stored, (await store.load()).until);
      loaded = true;
    }
    const { clock, announced, inFlight } = await coordination.look();
    latest = Math.max(latest, clock, announced);
    if (note === undefined) {
      const { at, watermarks } = await store.watermarks();
      note = { at: Math.max(at, latest), watermarks };
    }
    if (clock > deps.now() * 1000 + MAX_AHEAD) {
      throw new ServiceError(
        "clocks_differ",
        "ClickHouse's clock is more than a minute ahead of that of this process",
      );
    }
    // Stays so even if the announcements were lost with their table.
    const next = Math.max(Math.min(clock - behind, (inFlight ?? clock) - 1), announced, stored);
    // Again: another process may have failed before every replica had it.
    if (next > stored || announced < stored) await coordination.announce(next);
    // After the announcement, or an INSERT could begin between both.
    const running = await coordination.running();
    const until = Math.min(next, ...running.map(({ stamp }) => stamp ?? next));
    if (until <= stored) return;
    // Readers of watermarks find at least the instant they belong to.
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
      if (!failing) log.warn({ err: error }, "advancing the change feed failed");
      failing = true;
    }
  };

  return createLoop({ turn, pauseMs: deps.intervalMs });
};
