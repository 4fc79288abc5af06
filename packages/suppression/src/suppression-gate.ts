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

/** µs; keeps a process's batches in order. */
const STAMP_STEP: Micros = 100;
/** µs; below what ClickHouse refuses. */
const MAX_AHEAD: Micros = 5_000_000;
const ASK_AGAIN_MS = 1_000;

type SuppressionGateDeps = {
  readonly stamps: {
    /** `stamp`: readers cannot have passed it, µs by ClickHouse's clock. */
    take(signal?: AbortSignal): Promise<WriteTicket>;
    look(signal?: AbortSignal): Promise<Pick<WriteTicket, "generation">>;
  };
  readonly store: SuppressionReads & {
    addFound(found: readonly Suppression[]): Promise<void>;
    /** The first that was stored. */
    claimSecret(hash: string): Promise<string>;
    /** ms, by ClickHouse's clock. */
    serverTime(): Promise<number>;
  };
  readonly secret: string;
  /** Some 16 bytes each; clients with more are looked up. */
  readonly maxHeld: number;
  /** Another secret was used: the process must end. */
  readonly onLost: (error: ServiceError) => void;
  readonly metrics: Metrics;
  readonly log: Logger;
};

export type SuppressionGate = {
  /** Waits for ClickHouse. @throws ServiceError `suppression_secret` for another secret */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Reads new suppressions: judge again if `judgement` changed. @throws when ClickHouse does not answer */
  ticket(signal?: AbortSignal): Promise<WriteTicket>;
  /** Changes with what is known, also by `suppresses`. */
  judgement(): number;
  /**
   * false: neither the record nor a person in it was erased; true: ask `suppresses`.
   * @throws TypeError before `start`
   */
  suspects(record: ExportRecord): boolean;
  /** Also stores ids for the next erasure. @throws when ClickHouse fails, TypeError before `start` */
  suppresses(records: readonly ExportRecord[]): Promise<readonly boolean[]>;
  /** Stores nothing; may be a second behind. */
  wouldSuppress(records: readonly ExportRecord[]): Promise<readonly boolean[]>;
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
  let followed: number | null = null;
  let judgement = 0;
  let lastStamp: Micros = 0;
  let following: Promise<void> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;

  const checkSecret = async (): Promise<void> => {
    if ((await store.claimSecret(hash.ofSecret)) === hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  /** `generation` must be asked for before, so that the reading covers it. */
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

  const upTo = async <T extends Pick<WriteTicket, "generation">>(ask: Promise<T>): Promise<T> => {
    const now = performance.now();
    const asked = await ask;
    const { generation } = asked;
    // A running read may have begun earlier; a replica that is behind gives an old generation.
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
