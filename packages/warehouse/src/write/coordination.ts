/**
 * The numbers in ClickHouse by which the processes that write agree. They outlive every process, and there is one of
 * each for all processes that write to the same tables.
 */
import type { Micros, WriteTicket } from "@conversation-export/domain";
import { WarehouseError } from "../session/warehouse-error.ts";
import type { Session } from "../session/session.ts";
import { MAX_AHEAD, OF_RECORDS } from "./write-ticket.ts";

/** What a ticket consists of. @throws WarehouseError from every method */
export type Stamps = {
  /**
   * The generation, and an instant of upload: ClickHouse's clock, or what was announced and 1 µs.
   * @throws WarehouseError CLOCK_WENT_BACK, retryable, while ClickHouse's clock is far behind what was announced
   */
  take(signal?: AbortSignal): Promise<WriteTicket>;
  look(signal?: AbortSignal): Promise<Numbers>;
  /**
   * Asks that readers wait for this stamp, since its batch takes long; null: that they need not any more.
   * `writer`: names the process.
   */
  noteInFlight(writer: string, stamp: Micros | null): Promise<void>;
};

/**
 * `clock`: of ClickHouse, µs. `announced`: up to it stamps are refused. `generation`: of the suppressions; what was
 * added before it was made is readable. `inFlight`: the earliest stamp for which readers are to wait.
 */
export type Numbers = {
  readonly clock: Micros;
  readonly announced: Micros;
  readonly generation: number;
  readonly inFlight: Micros | null;
};

/** How far readers of changes may come. @throws WarehouseError from every method */
export type Announcements = {
  look(): Promise<Numbers>;
  /** From now on stamps up to this instant are refused. */
  announce(until: Micros): Promise<void>;
  /**
   * The running INSERTs of records and suppressions. On a cluster a shard may still run what its sender has given
   * up.
   */
  running(): Promise<readonly RunningInsert[]>;
};

/** `id`: of its query. `stamp`: of its rows, or as early as they may have; null: of suppressions. */
export type RunningInsert = { readonly id: string; readonly stamp: Micros | null };

/** By which suppressions writers judge. @throws WarehouseError from every method */
export type Generations = {
  /** Makes a generation behind suppressions that are readable, and tells writers to judge by it. */
  begin(): Promise<number>;
  /** From now on what was judged by an earlier generation is refused. */
  require(generation: number): Promise<void>;
};

/** So long readers wait for a slow batch, µs; it saves the writer work, and nothing depends on it. */
export const PATIENCE: Micros = 30_000_000;
/** A process that has told nothing for so long is gone, µs. */
const ALIVE_FOR: Micros = 120_000_000;
/** The constraint of the tables lets rows of a hand be so old, µs. */
const HAND_IS_LATE: Micros = 1_000_000;
const TIMEOUT_MS = 10_000;

const saveNumber = async (session: Session, name: string, value: number): Promise<void> => {
  await session.insert(
    "coordination.save",
    { table: "coordination", rows: [{ name, version: value, value }] },
    { settings: { async_insert: 0, insert_deduplicate: 0 } },
  );
};

const running = async (session: Session): Promise<RunningInsert[]> => {
  const here = "current_database = currentDatabase() OR position(query, currentDatabase()) > 0";
  const rows = await session.rows<{ id: string; stamp: string | null }>(
    "coordination.running",
    `SELECT initial_query_id AS id, if(${OF_RECORDS},
        toString(ifNull(toInt64OrNull(extract(initial_query_id, '^uploaded-(\\\\d+)-')),
          toUnixTimestamp64Micro(now64(6)) - toInt64(elapsed * 1000000) - ${HAND_IS_LATE})), NULL) AS stamp
      FROM ${session.names.system("processes")}
      WHERE (${session.names.cluster === null ? here : "1"}) AND (${OF_RECORDS} OR startsWith(query, 'INSERT INTO suppressions'))`,
  );
  return rows.map(({ id, stamp }) => ({ id, stamp: stamp === null ? null : Number(stamp) }));
};

const numbersOf = async (session: Session, signal?: AbortSignal): Promise<Numbers> => {
  const [row] = await session.rows<Record<keyof Numbers, string>>(
    "coordination.numbers",
    `SELECT toString(toUnixTimestamp64Micro(now64(6)) AS now) AS clock,
        toString(maxIf(largest, name = 'announced') AS passed) AS announced,
        toString(maxIf(largest, name = 'generation')) AS generation,
        toString(arrayMin(arrayFilter(one -> one > passed AND one > now - ${PATIENCE},
          groupArrayIf(last, startsWith(name, 'stamp of '))))) AS inFlight
      FROM (SELECT name, max(value) AS largest, argMax(value, version) AS last FROM coordination GROUP BY name)`,
    { signal },
  );
  return {
    clock: Number(row?.clock),
    announced: Number(row?.announced),
    generation: Number(row?.generation),
    inFlight: Number(row?.inFlight) || null,
  };
};

/** @param deps.session of a user who writes records */
export const createStamps = (deps: { readonly session: Session }): Stamps => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  return {
    take: async (signal) => {
      const { clock, announced, generation } = await numbersOf(session, signal);
      const stamp = Math.max(clock, announced + 1);
      if (stamp <= clock + MAX_AHEAD) return { stamp, generation };
      throw new WarehouseError("warehouse_unavailable", "CLOCK_WENT_BACK", true, undefined);
    },
    look: (signal) => numbersOf(session, signal),
    noteInFlight: (writer, stamp) =>
      session.command(
        "coordination.in_flight",
        `INSERT INTO coordination
          SELECT {name:String}, toUnixTimestamp64Micro(now64(6)), toUInt64({stamp:Int64})`,
        { parameters: { name: `stamp of ${writer}`, stamp: stamp ?? 0 } },
      ),
  };
};

/** @param deps.session of the user for jobs */
export const createAnnouncements = (deps: { readonly session: Session }): Announcements => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  return {
    look: () => numbersOf(session),
    announce: (until) => saveNumber(session, "announced", until),
    running: async () => [
      ...(await running(session)),
      // A server of a cluster may be asked before another begins what a third one has already given up.
      ...(session.names.cluster === null ? [] : await running(session)),
    ],
  };
};

/** @param deps.session of the user for jobs */
export const createGenerations = (deps: { readonly session: Session }): Generations => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  return {
    begin: async () => {
      // Whoever has read the one before may not have seen the suppressions; who reads this one does. The clock only
      // keeps the number above all former ones when the table was put back to an earlier state.
      const { clock, generation: last } = await numbersOf(session);
      const generation = Math.max(last + 1, clock);
      await saveNumber(session, "generation", generation);
      return generation;
    },
    require: (generation) => saveNumber(session, "required", generation),
  };
};

/** The jobs processes, each with the Redis that it uses. @throws WarehouseError from every method */
export type Processes = {
  /** Tells that a process is alive, for the next two minutes. */
  note(process: JobsProcess): Promise<void>;
  alive(): Promise<readonly JobsProcess[]>;
};

/** Of a process that has not reached its Redis yet. */
export const UNKNOWN_REDIS = "unknown";

/** `id`: names the process. `redis`: names the Redis that it uses. Neither has a blank. */
export type JobsProcess = { readonly id: string; readonly redis: string };

/** @param deps.session of the user for jobs, or of one who migrates */
export const createProcesses = (deps: { readonly session: Session }): Processes => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  return {
    note: ({ id, redis }) =>
      session.command(
        "coordination.alive",
        "INSERT INTO coordination SELECT {name:String}, toUnixTimestamp64Micro(now64(6)), 0",
        { parameters: { name: `jobs ${id} ${redis}` } },
      ),
    alive: async () => {
      const rows = await session.rows<{ name: string }>(
        "coordination.processes",
        `SELECT name FROM coordination WHERE startsWith(name, 'jobs ')
          GROUP BY name HAVING max(version) > toUnixTimestamp64Micro(now64(6)) - ${ALIVE_FOR} ORDER BY max(version)`,
      );
      // A Redis that was emptied has another id since: the latest counts.
      const redisOf = new Map(
        rows.map(({ name }) => {
          const [, id = "", redis = ""] = name.split(" ");
          return [id, redis];
        }),
      );
      return Array.from(redisOf, ([id, redis]) => ({ id, redis }));
    },
  };
};
