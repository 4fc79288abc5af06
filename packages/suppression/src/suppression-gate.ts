import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExportRecord, Micros } from "@conversation-export/domain";
import { type Logger, type Metrics, retry, ServiceError } from "@conversation-export/runtime";
import { createSubjectHash } from "./subject-hash.ts";
import { createSuppressionIndex, type SuppressionIndex, type SuppressionRow } from "./suppression-index.ts";

/** A process that has not renewed its lease for this share of its length writes nothing; the rest is for clocks. */
const USABLE_SHARE = 2 / 3;
/** How many times a lease is renewed in its length. */
const RENEWALS = 20;
const MEASURE_CLOCK_EVERY_MS = 10_000;
/** An answer that took longer says too little about a clock, nor does one that took a tenth of the lease. */
const MAX_ANSWER_MS = 1_000;
/** How much earlier than the last reading suppressions are read again: longer than any INSERT of them may run. */
const READ_AGAIN_MS = 600_000;

const KINDS = {
  "conversation.exported": "conversation",
  "message.exported": "message",
  "end_user.exported": "end_user",
} as const;

export type SuppressionGateDeps = {
  readonly lease: {
    renew(state: {
      readonly id: string;
      readonly service: string;
      readonly confirmed: number;
      readonly oldestUpload: Micros | null;
    }): Promise<{ readonly generation: number; readonly kept: boolean }>;
    release(id: string): Promise<void>;
  };
  /** The length of a lease, ms. */
  readonly leaseMs: number;
  readonly store: {
    /** `since`: only what was added at or after that instant, ms by ClickHouse's clock; null: all. */
    load(take: (row: SuppressionRow) => void, since: number | null): Promise<void>;
    /** Keeps ids that were found by this process. */
    add(rows: readonly SuppressionRow[]): Promise<void>;
    claimSecret(hash: string): Promise<string>;
    serverTime(): Promise<number>;
  };
  readonly secret: string;
  /** The name of the process in the list of leases. */
  readonly service: string;
  /** A clock that never goes back, ms. */
  readonly now: () => number;
  /** Resolves when everything that was read before the call is written or given up. */
  readonly settled: () => Promise<void>;
  readonly oldestUpload: () => Micros | null;
  /** The process may hold records that were erased meanwhile: it must end without writing them. */
  readonly onLost: (error: ServiceError) => void;
  readonly metrics: Metrics;
  readonly log: Logger;
};

/** What stands between a process and the tables of records. */
export type SuppressionGate = {
  /** Resolves when the suppressions are read and the lease is held; waits for Redis and ClickHouse as long as it takes. */
  start(): Promise<void>;
  /** Gives the lease back: nothing may be written any more. */
  stop(): Promise<void>;
  /**
   * true: the record was erased, or belongs to who was erased, and is dropped. Notes what an erasure must look at for
   * it: what the record was read from counts as done only behind `foundStored`. Only after `start`.
   */
  suppresses(record: ExportRecord): boolean;
  /** The same answer for who only looks: nothing is noted. */
  wouldSuppress(record: ExportRecord): boolean;
  /** Resolves when everything that was noted before the call is stored. @throws when ClickHouse does not take it */
  foundStored(): Promise<void>;
  /** The same for a row of which only the id is known. */
  suppressesId(row: {
    readonly clientId: string;
    readonly kind: "conversation" | "message";
    readonly id: string;
    readonly dateCreated: Micros;
  }): boolean;
  /**
   * Waits until this process may write; `notAfter` is until when an INSERT must have begun, ms by ClickHouse's clock.
   * Rejects when `signal` aborts.
   */
  untilOpen(signal: AbortSignal): Promise<{ readonly notAfter: number }>;
  /** true, or why nothing is written. */
  isOpen(): true | string;
};

export const createSuppressionGate = (deps: SuppressionGateDeps): SuppressionGate => {
  const { lease, store, leaseMs, now, log } = deps;
  const id = randomUUID();
  const hash = createSubjectHash(deps.secret);
  const stopping = new AbortController();
  const found: SuppressionRow[] = [];
  const waiting = new Set<() => void>();
  const index: SuppressionIndex = createSuppressionIndex({ hash });
  /** Up to when the suppressions are read, ms by ClickHouse's clock; null: not at all. */
  let readUpTo: number | null = null;
  /** The generation that this process follows; null until it has read the suppressions. */
  let confirmed: number | null = null;
  let validUntil = Number.NEGATIVE_INFINITY;
  /** How often the lease was held anew: another number means that there was a time without it. */
  let holdings = 0;
  /** What ClickHouse's clock shows more than ours. */
  let clockOffset = 0;
  let measuredAt = Number.NEGATIVE_INFINITY;
  let lost = false;
  let refreshing: Promise<void> | undefined;
  let measuring: Promise<void> | undefined;
  let keeping: Promise<void> | undefined;
  /** How many of what was found is stored. */
  let stored = 0;
  let loop = Promise.resolve();

  const isOpen = (): true | string => {
    if (lost) return "the writer's lease was lost";
    if (confirmed === null) return "the suppressions are not read yet";
    return now() < validUntil || "the writer's lease could not be renewed";
  };

  const lose = (message: string, code: string): void => {
    if (lost) return;
    lost = true;
    deps.onLost(new ServiceError(code, message));
  };

  const renew = async (): Promise<number> => {
    const askedAt = now();
    const state = { id, service: deps.service, confirmed: confirmed ?? 0, oldestUpload: deps.oldestUpload() };
    const { generation, kept } = await lease.renew(state);
    if (!kept) holdings += 1;
    if (confirmed !== null && !kept) {
      // Nobody has waited for this process meanwhile: what it holds may have been erased.
      if (generation !== confirmed) lose("an erasure went on without this process", "writer_lease_lost");
      else log.warn("the writer's lease had run out and is held again");
    }
    validUntil = Math.max(validUntil, askedAt + leaseMs * USABLE_SHARE);
    if (isOpen() === true) {
      for (const wake of waiting) wake();
      waiting.clear();
    }
    return generation;
  };

  const measureClock = async (): Promise<void> => {
    const askedAt = now();
    const serverTime = await store.serverTime();
    const answeredAt = now();
    const isQuick = answeredAt - askedAt <= Math.min(MAX_ANSWER_MS, leaseMs / 10);
    const isFirst = measuredAt === Number.NEGATIVE_INFINITY;
    if (!isQuick && !isFirst) return;
    // A first answer that was slow gives an offset that is rather too small: tickets end too early, never too late.
    clockOffset = serverTime - (isQuick ? (askedAt + answeredAt) / 2 : answeredAt);
    measuredAt = isQuick ? answeredAt : answeredAt - MEASURE_CLOCK_EVERY_MS;
  };

  const checkSecret = async (): Promise<void> => {
    if ((await store.claimSecret(hash.ofSecret)) === hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  const refresh = async (generation: number): Promise<void> => {
    const held = holdings;
    await checkSecret();
    const readAt = now() + clockOffset;
    await store.load(index.add, readUpTo === null ? null : readUpTo - READ_AGAIN_MS);
    readUpTo = readAt;
    // What was let through by the former suppressions is written before the new ones are confirmed.
    await deps.settled();
    if (held !== holdings && confirmed === null) {
      throw new ServiceError("writer_lease_lost", "the lease ran out while the suppressions were read", {
        retryable: true,
      });
    }
    confirmed = generation;
    log.info({ generation, ...index.counts() }, "suppressions read");
  };

  const keepFound = async (): Promise<void> => {
    const rows = found.slice();
    await store.add(rows);
    found.splice(0, rows.length);
    stored += rows.length;
  };

  const foundStored = async (): Promise<void> => {
    const upTo = stored + found.length;
    while (stored < upTo) {
      keeping ??= keepFound().finally(() => {
        keeping = undefined;
      });
      await keeping;
    }
  };

  const warnOf = (what: string) => (error: unknown) => {
    if (!stopping.signal.aborted) log.warn({ err: error }, what);
  };

  const tick = async (): Promise<void> => {
    // An erasure need not wait for a process that writes nothing any more.
    if (lost) return;
    const generation = await renew();
    if (confirmed === null || generation === confirmed || refreshing !== undefined || lost) return;
    refreshing = refresh(generation)
      .then(renew)
      .then(
        () => {},
        (error: unknown) => {
          if (error instanceof ServiceError && !error.retryable) lose(error.message, error.code);
          else warnOf("the suppressions cannot be read, will be tried again")(error);
        },
      )
      .finally(() => {
        refreshing = undefined;
      });
  };

  /** What may take as long as ClickHouse likes: nobody waits for it. */
  const attend = (): void => {
    if (confirmed === null) return;
    if (now() - measuredAt > MEASURE_CLOCK_EVERY_MS) {
      measuring ??= measureClock()
        .catch(warnOf("ClickHouse does not tell its time"))
        .finally(() => {
          measuring = undefined;
        });
    }
    if (found.length === 0 || keeping !== undefined) return;
    foundStored().catch(warnOf("what was found of erased persons is not stored yet"));
  };

  const watch = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await sleep(leaseMs / RENEWALS, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      attend();
      await tick().catch(warnOf("the writer's lease is not renewed"));
    }
  };

  const matchOf = (record: ExportRecord): ReturnType<SuppressionIndex["match"]> => {
    if (readUpTo === null) throw new TypeError("asked before the suppressions were read");
    return index.match(record);
  };

  const note = (record: ExportRecord, createdBefore: Micros): void => {
    const row = { clientId: record.clientId, kind: KINDS[record.type], value: record.id, createdBefore };
    index.add(row);
    found.push(row);
  };

  deps.metrics.gauge("writer_lease_held", "1 while this process may write records", [], (gauge) =>
    gauge.set(isOpen() === true ? 1 : 0),
  );
  deps.metrics.gauge("suppressions", "What must not come back, by kind", ["kind"], (gauge) => {
    for (const [kind, count] of Object.entries(index.counts())) gauge.set({ kind }, count);
  });

  return {
    start: async () => {
      const first = async (): Promise<void> => {
        // In this order: an erasure that begins now waits for the lease, and one before is read.
        const generation = await renew();
        if (measuredAt === Number.NEGATIVE_INFINITY) await measureClock();
        await refresh(generation);
        await renew();
      };
      loop = watch();
      try {
        await retry(first, {
          signal: stopping.signal,
          onRetry: (error, attempt) => log.warn({ err: error, attempt }, "no leave to write yet"),
        });
      } catch (error) {
        stopping.abort(error);
        throw error;
      }
    },
    stop: async () => {
      stopping.abort(new ServiceError("stopped", "stopped while waiting for leave to write"));
      await loop;
      validUntil = Number.NEGATIVE_INFINITY;
      await foundStored().catch(() => undefined);
      await lease.release(id).catch(() => undefined);
    },
    suppresses: (record) => {
      const match = matchOf(record);
      if (match === undefined) return false;
      // An older version of it may be stored that did not name the person, or what names only this id.
      if (!match.byOwnId) note(record, match.createdBefore);
      return true;
    },
    wouldSuppress: (record) => matchOf(record) !== undefined,
    foundStored,
    suppressesId: ({ clientId, kind, id: recordId, dateCreated }) => {
      if (readUpTo === null) throw new TypeError("asked before the suppressions were read");
      return index.matchId(clientId, kind, recordId, dateCreated);
    },
    untilOpen: async (signal) => {
      while (isOpen() !== true) {
        signal.throwIfAborted();
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
        await promise;
        waiting.delete(resolve);
      }
      signal.throwIfAborted();
      return { notAfter: validUntil + clockOffset };
    },
    isOpen,
  };
};
