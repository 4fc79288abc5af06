import { randomUUID } from "node:crypto";
import type { ExportRecord, Micros } from "@conversation-export/domain";
import { createLoop, type Logger, type Metrics, retry, ServiceError } from "@conversation-export/runtime";
import { createFoundRows } from "./found-rows.ts";
import { createServerClock } from "./server-clock.ts";
import { createSubjectHash } from "./subject-hash.ts";
import { createSuppressionIndex } from "./suppression-index.ts";
import { createSuppressionJudge, type SuppressionLookUp } from "./suppression-judge.ts";
import { createKeysOf, keyHash, type SuppressionRow } from "./suppression-key.ts";
import { createSuppressionReader, type SuppressionSource } from "./suppression-reader.ts";

/**
 * A process may write for this share of its lease after a renewal; the rest allows for clocks that differ.
 */
const USABLE_SHARE = 2 / 3;
/** Renewals in the length of a lease. */
const RENEWALS = 20;
/**
 * Instants of upload differ at least by this, so that they advance although ClickHouse's clock was set back,
 * µs.
 */
const UPLOAD_STEP: Micros = 100;
/** Longer than the clocks of two processes differ, which both follow ClickHouse's, µs. */
const CLOCKS_DIFFER: Micros = 2_000_000;

export type SuppressionGateDeps = {
  readonly lease: {
    /** The generation of suppressions that writers are to follow. */
    generation(): Promise<number>;
    renew(state: {
      readonly id: string;
      readonly service: string;
      readonly confirmed: number;
      readonly oldestUpload: Micros | null;
      readonly uploadFrom: Micros;
    }): Promise<{ readonly generation: number; readonly heldSince: number; readonly uploadFrom: Micros }>;
    release(id: string): Promise<void>;
  };
  /** The length of a lease, ms. */
  readonly leaseMs: number;
  readonly store: SuppressionSource &
    SuppressionLookUp & {
      /** Stores ids that this process has found. */
      add(rows: readonly SuppressionRow[]): Promise<void>;
      /** The hash of the secret that was stored first; `hash` when there was none. */
      claimSecret(hash: string): Promise<string>;
      /** ms since the epoch by ClickHouse's clock. */
      serverTime(): Promise<number>;
    };
  readonly secret: string;
  /** At most as many suppressions are held in memory, at about 16 bytes; clients with more are looked up. */
  readonly maxHeld: number;
  /** Name of the process in the list of leases. */
  readonly service: string;
  /** A clock that never goes back, ms. */
  readonly now: () => number;
  /** Resolves when everything read before the call is written or given up. */
  readonly settled: () => Promise<void>;
  /** Earliest instant of upload of the batches in flight; null: none is in flight. */
  readonly oldestUpload: () => Micros | null;
  /** The process may hold records that were erased meanwhile: it must end without writing them. */
  readonly onLost: (error: ServiceError) => void;
  readonly metrics: Metrics;
  readonly log: Logger;
};

/** Decides whether a process may write records, and which ones must not come back. */
export type SuppressionGate = {
  /** Names this process in the list of leases. */
  readonly leaseId: string;
  /**
   * Reads the suppressions and takes the lease, waiting for Redis and ClickHouse as long as it takes.
   * @throws ServiceError `suppression_secret` when the stored suppressions were made with another secret
   */
  start(): Promise<void>;
  /** Gives the lease back: nothing may be written any more. */
  stop(): Promise<void>;
  /**
   * false: neither the record nor a person whom it names was erased. true: `suppresses` knows. Until it has
   * told, or the record is forgotten, later records that name this one are suspected too.
   * @throws TypeError before `start` has resolved
   */
  suspects(record: ExportRecord): boolean;
  /** Forgets suspected records that nobody will ask `suppresses` about. */
  forget(records: readonly ExportRecord[]): void;
  /**
   * true: the record, or a person whom it names, was erased, and it is dropped. Notes its id for the next
   * erasure; what the record was read from may be committed only after `foundStored`.
   * @throws when ClickHouse does not tell, TypeError before `start` has resolved
   */
  suppresses(records: readonly ExportRecord[]): Promise<readonly boolean[]>;
  /** The answers of `suppresses` without noting anything. */
  wouldSuppress(records: readonly ExportRecord[]): Promise<readonly boolean[]>;
  /**
   * Resolves when everything noted before the call is stored.
   * @throws when ClickHouse does not take it
   */
  foundStored(): Promise<void>;
  /**
   * Waits until this process may write. An INSERT must begin before `notAfter`, ms by ClickHouse's clock, and
   * its rows must not have an earlier instant of upload than `uploadFrom`: readers may have passed it.
   * @throws the reason of `signal` when it aborts
   */
  untilOpen(signal: AbortSignal): Promise<{ readonly notAfter: number; readonly uploadFrom: Micros }>;
  /**
   * An instant of upload for the next batch: the time by ClickHouse's clock, never less than before nor than
   * what readers have been told to be settled.
   */
  uploadTime(): Micros;
  /** true, or why nothing is written. */
  isOpen(): true | string;
};

export const createSuppressionGate = (deps: SuppressionGateDeps): SuppressionGate => {
  const { lease, store, leaseMs, now, log, metrics } = deps;
  const id = randomUUID();
  const hash = createSubjectHash(deps.secret);
  const stopping = new AbortController();
  const found = createFoundRows(store);
  const clock = createServerClock({ serverTime: () => store.serverTime(), now, maxAnswerMs: leaseMs / 10 });
  const waiting = new Set<() => void>();
  const keysOf = createKeysOf(hash);
  const index = createSuppressionIndex({ max: deps.maxHeld, keysOf, hash: keyHash });
  const reader = createSuppressionReader({ index, source: store, found, max: deps.maxHeld });
  const lookUps = metrics.counter(
    "suppression_look_ups_total",
    "Records of which ClickHouse was asked whether they were erased",
    [],
  );
  const judge = createSuppressionJudge({
    index,
    keysOf,
    store,
    found,
    onLookUp: (records) => lookUps.inc(records),
  });
  /** The generation that this process follows; null until it has read the suppressions. */
  let confirmed: number | null = null;
  let validUntil = Number.NEGATIVE_INFINITY;
  /** Of the lease of which the last answer told. */
  let heldSince: number | null = null;
  let lost = false;
  /** Readers may have passed what was uploaded earlier. */
  let uploadFrom: Micros = 0;
  let lastUpload: Micros = 0;
  let refreshing: Promise<void> | undefined;
  let measuring: Promise<void> | undefined;

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

  /** ClickHouse's clock, µs. */
  const time = (): Micros => Math.floor((now() + clock.offset()) * 1000);

  const uploadTime = (): Micros => {
    lastUpload = Math.max(lastUpload + UPLOAD_STEP, uploadFrom, time());
    return lastUpload;
  };

  /** While the lease was not held, readers may have passed the present: Redis may have forgotten how far. */
  const beginLater = (told: Micros): void => {
    uploadFrom = Math.max(uploadFrom, told, time() + CLOCKS_DIFFER);
  };

  /** Takes or renews the lease of a process that follows this generation. Resolves to the present one. */
  const renew = async (following: number): Promise<number> => {
    const askedAt = now();
    const oldestUpload = deps.oldestUpload();
    const answer = await lease.renew({
      id,
      service: deps.service,
      confirmed: following,
      oldestUpload,
      uploadFrom: Math.min(oldestUpload ?? Number.POSITIVE_INFINITY, uploadTime()),
    });
    const { generation } = answer;
    const kept = answer.heldSince === heldSince;
    heldSince = answer.heldSince;
    if (!kept) beginLater(answer.uploadFrom);
    if (confirmed !== null && !kept) {
      // An erasure did not wait for this process: records that it holds may have been erased.
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

  const checkSecret = async (): Promise<void> => {
    if ((await store.claimSecret(hash.ofSecret)) === hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  const read = async (): Promise<void> => {
    await checkSecret();
    await reader.read(now() + clock.offset());
    // Records that passed the former suppressions are written before the new ones are confirmed.
    await deps.settled();
  };

  const follow = (generation: number): void => {
    confirmed = generation;
    const lookedUp = index.lookedUp().length;
    log.info({ generation, held: index.size(), lookedUp, lease: id }, "suppressions read");
    if (lookedUp > 0)
      log.warn({ lookedUp }, "suppressions of clients are looked up, there is no room for them");
  };

  const warnOf = (message: string) => (error: unknown) => {
    if (!stopping.signal.aborted) log.warn({ err: error }, message);
  };

  const tick = async (): Promise<void> => {
    // An erasure need not wait for a process that writes nothing any more.
    if (lost || confirmed === null) return;
    const generation = await renew(confirmed);
    if (generation === confirmed || refreshing !== undefined || lost) return;
    refreshing = read()
      .then(async () => {
        follow(generation);
        await renew(generation);
      })
      .catch((error: unknown) => {
        if (error instanceof ServiceError && !error.retryable) lose(error.message, error.code);
        else warnOf("the suppressions cannot be read, will be tried again")(error);
      })
      .finally(() => {
        refreshing = undefined;
      });
  };

  /** Starts work that may take as long as ClickHouse likes; renewals do not wait for it. */
  const attend = (): void => {
    if (confirmed === null) return;
    if (clock.isDue()) {
      measuring ??= clock
        .measure()
        .catch(warnOf("ClickHouse does not tell its time"))
        .finally(() => {
          measuring = undefined;
        });
    }
    if (!found.areIdle()) return;
    found.stored().catch(warnOf("what was found of erased persons is not stored yet"));
  };

  const watch = createLoop({
    turn: async () => {
      attend();
      await tick().catch(warnOf("the writer's lease is not renewed"));
    },
    pauseMs: leaseMs / RENEWALS,
    pauseFirst: true,
  });

  const checkRead = (): void => {
    if (confirmed === null) throw new TypeError("asked before the suppressions were read");
  };

  metrics.gauge("writer_lease_held", "1 while this process may write records", [], (gauge) =>
    gauge.set(isOpen() === true ? 1 : 0),
  );
  const show = (name: string, help: string, value: () => number): void => {
    metrics.gauge(name, help, [], (gauge) => gauge.set(value()));
  };
  show("suppressions", "Suppressions that this process holds in memory", index.size);
  show("suppressions_max", "Suppressions that this process may hold in memory", () => deps.maxHeld);
  show("suppression_bytes", "Memory of the suppressions that this process holds", index.bytes);
  show(
    "suppression_clients_looked_up",
    "Clients whose suppressions are not held but looked up in ClickHouse",
    () => index.lookedUp().length,
  );

  return {
    leaseId: id,
    start: async () => {
      const first = async (): Promise<void> => {
        if (!clock.isMeasured()) await clock.measure();
        let told = await lease.generation();
        for (;;) {
          const generation = told;
          await read();
          // Erasures wait for whoever has a lease, so it comes last; one that has begun meanwhile did not wait.
          told = await renew(generation);
          if (told === generation) return follow(generation);
        }
      };
      watch.start();
      try {
        await retry(first, {
          signal: stopping.signal,
          onRetry: (error, attempt) => log.warn({ err: error, attempt }, "no leave to write yet"),
        });
      } catch (error) {
        stopping.abort(error);
        void watch.stop();
        throw error;
      }
    },
    stop: async () => {
      stopping.abort(new ServiceError("stopped", "stopped while waiting for leave to write"));
      await watch.stop();
      validUntil = Number.NEGATIVE_INFINITY;
      await found.stored().catch(() => undefined);
      await lease.release(id).catch(() => undefined);
    },
    suspects: (record) => {
      checkRead();
      return judge.suspect(record);
    },
    forget: judge.forget,
    suppresses: async (records) => {
      checkRead();
      return judge.judge(records, true);
    },
    wouldSuppress: async (records) => {
      checkRead();
      return judge.judge(records, false);
    },
    foundStored: found.stored,
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
      return { notAfter: validUntil + clock.offset(), uploadFrom };
    },
    uploadTime,
    isOpen,
  };
};
