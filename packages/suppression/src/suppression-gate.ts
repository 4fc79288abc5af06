import type {
  ExportRecord,
  Micros,
  Suppression,
  SuppressionReads,
  WriteTicket,
} from "@conversation-export/domain";
import { type Logger, type Metrics, retry, ServiceError } from "@conversation-export/runtime";
import { createSubjectHash } from "./subject-hash.ts";
import { createSuppressionIndex } from "./suppression-index.ts";
import { createSuppressionJudge } from "./suppression-judge.ts";
import { createKeysOf, keyHash } from "./suppression-key.ts";
import { createSuppressionReader } from "./suppression-reader.ts";

/** Stamps of one process differ at least by this, so that its batches keep their order, µs. */
const STAMP_STEP: Micros = 100;
/** Less than a stamp may be ahead of ClickHouse's clock, µs. */
const MAX_AHEAD: Micros = 5_000_000;
const ASK_AGAIN_MS = 1_000;

type SuppressionGateDeps = {
  readonly stamps: {
    /** `stamp`: above all that readers may have passed, µs by ClickHouse's clock. */
    take(signal?: AbortSignal): Promise<WriteTicket>;
    look(signal?: AbortSignal): Promise<Pick<WriteTicket, "generation">>;
  };
  readonly store: SuppressionReads & {
    /** Stores ids that this process has found. */
    addFound(found: readonly Suppression[]): Promise<void>;
    /** The hash of the secret that was stored first; `hash` when there was none. */
    claimSecret(hash: string): Promise<string>;
    /** ms since the epoch by ClickHouse's clock. */
    serverTime(): Promise<number>;
  };
  readonly secret: string;
  /** At most as many suppressions are held in memory, at about 16 bytes; clients with more are looked up. */
  readonly maxHeld: number;
  /** Another secret than that of the stored suppressions was set: the process must end. */
  readonly onLost: (error: ServiceError) => void;
  readonly metrics: Metrics;
  readonly log: Logger;
};

/** Decides which records must not come back. */
export type SuppressionGate = {
  /**
   * Reads the suppressions, waiting for ClickHouse as long as it takes.
   * @throws ServiceError `suppression_secret` when the stored suppressions were made with another secret
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Takes a stamp and reads new suppressions. Judge again if `judgement` has changed.
   * @throws when ClickHouse does not answer
   */
  ticket(signal?: AbortSignal): Promise<WriteTicket>;
  /** Changes when more suppressions are known, also those that `suppresses` has stored. */
  judgement(): number;
  /**
   * false: neither the record nor a person whom it names was erased. true: `suppresses` knows.
   * @throws TypeError before `start` has resolved
   */
  suspects(record: ExportRecord): boolean;
  /**
   * True: the record or a person in it was erased; its id is stored for the next erasure.
   * @throws when ClickHouse fails, TypeError before `start` has resolved
   */
  suppresses(records: readonly ExportRecord[]): Promise<readonly boolean[]>;
  /** The answers of `suppresses` without noting anything, by what was known a second ago or later. */
  wouldSuppress(records: readonly ExportRecord[]): Promise<readonly boolean[]>;
  /** true, or why nothing is written. */
  isOpen(): true | string;
};

export const createSuppressionGate = (deps: SuppressionGateDeps): SuppressionGate => {
  const { stamps, store, log, metrics } = deps;
  const hash = createSubjectHash(deps.secret);
  const stopping = new AbortController();
  const keysOf = createKeysOf(hash);
  const index = createSuppressionIndex({ max: deps.maxHeld, keysOf, hash: keyHash });
  const read = createSuppressionReader({ index, source: store, max: deps.maxHeld });
  const lookUps = metrics.counter(
    "conversation_export_suppression_look_ups_total",
    "Records of which ClickHouse was asked whether they were erased",
    [],
  );
  const judge = createSuppressionJudge({
    index,
    keysOf,
    store,
    onLookUp: (records) => lookUps.inc(records),
    onFound: () => {
      judgement += 1;
    },
  });
  /** The generation that this process follows; null until it has read the suppressions. */
  let followed: number | null = null;
  let judgement = 0;
  let lastStamp: Micros = 0;
  let following: Promise<void> | undefined;
  /** When the generation was asked for that is followed since. */
  let askedAt = Number.NEGATIVE_INFINITY;

  const checkSecret = async (): Promise<void> => {
    if ((await store.claimSecret(hash.ofSecret)) === hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  /** Reads what is new up to a generation that was asked for before. */
  const follow = async (generation: number): Promise<void> => {
    await checkSecret();
    await read(await store.serverTime());
    followed = generation;
    judgement += 1;
    const lookedUp = index.lookedUp().length;
    log.info({ generation, held: index.size(), lookedUp }, "suppressions read");
    if (lookedUp > 0)
      log.warn({ lookedUp }, "suppressions of clients are looked up, there is no room for them");
  };

  /** Reads what is new up to a generation that is being asked for. */
  const upTo = async <T extends Pick<WriteTicket, "generation">>(ask: Promise<T>): Promise<T> => {
    const now = performance.now();
    const asked = await ask;
    const { generation } = asked;
    // A reading under way may have begun with an earlier one. A replica that is behind tells one of the past.
    while (followed === null || followed < generation) {
      following ??= follow(generation).finally(() => {
        following = undefined;
      });
      await following;
    }
    askedAt = Math.max(askedAt, now);
    return asked;
  };

  const lose = (error: unknown): never => {
    if (error instanceof ServiceError && !error.retryable && error.code === "suppression_secret")
      deps.onLost(error);
    throw error;
  };

  const checkRead = (): void => {
    if (followed === null) throw new TypeError("asked before the suppressions were read");
  };

  const show = (name: string, help: string, value: () => number): void => {
    metrics.gauge(name, help, [], (gauge) => gauge.set(value()));
  };
  show("conversation_export_suppressions", "Suppressions that this process holds in memory", index.size);
  show(
    "conversation_export_suppressions_max",
    "Suppressions that this process may hold in memory",
    () => deps.maxHeld,
  );
  show(
    "conversation_export_suppression_bytes",
    "Memory of the suppressions that this process holds",
    index.bytes,
  );
  show(
    "conversation_export_suppression_clients_looked_up",
    "Clients whose suppressions are not held but looked up in ClickHouse",
    () => index.lookedUp().length,
  );

  return {
    start: async () => {
      await retry(() => upTo(stamps.look(stopping.signal)), {
        signal: stopping.signal,
        onRetry: (error, attempt) =>
          log.warn({ err: error, attempt }, "reading the suppressions failed, retrying"),
      });
    },
    stop: async () => {
      stopping.abort(new ServiceError("stopped", "stopped while the suppressions are read"));
    },
    ticket: async (signal) => {
      const { stamp, generation } = await upTo(stamps.take(signal)).catch(lose);
      // Not above a clock that was set back: ClickHouse would refuse it.
      lastStamp = lastStamp > stamp + MAX_AHEAD ? stamp : Math.max(lastStamp + STAMP_STEP, stamp);
      return { stamp: lastStamp, generation };
    },
    judgement: () => judgement,
    suspects: (record) => {
      checkRead();
      return index.mayDrop(record);
    },
    suppresses: async (records) => {
      checkRead();
      return judge(records, true);
    },
    wouldSuppress: async (records) => {
      if (performance.now() - askedAt > ASK_AGAIN_MS) await upTo(stamps.look()).catch(lose);
      checkRead();
      return judge(records, false);
    },
    isOpen: () => (followed === null ? "the suppressions are not read yet" : true),
  };
};
