/** One set for all processes that write to the same tables; it outlives them. */
import type { Micros, WriteTicket } from "@conversation-export/domain";
import { WarehouseError } from "../session/warehouse-error.ts";
import type { Session } from "../session/session.ts";
import { MAX_AHEAD, OF_RECORDS } from "./write-ticket.ts";

/** `clock`: ClickHouse's. Stamps up to `announced` are rejected; readers wait for `inFlight`. */
export type Numbers = {
  readonly clock: Micros;
  readonly announced: Micros;
  readonly generation: number;
  readonly inFlight: Micros | null;
};

/** `stamp`: of its rows, or the earliest possible; null: of suppressions. */
export type RunningInsert = { readonly id: string; readonly stamp: Micros | null };

/** Without blanks. */
export type JobsProcess = { readonly id: string; readonly redis: string };

export const UNKNOWN_REDIS = "unknown";

/** @throws WarehouseError from every method */
export type Coordination = {
  look(signal?: AbortSignal): Promise<Numbers>;
  /** Stamp: ClickHouse's clock, or `announced` + 1 µs. @throws WarehouseError CLOCK_WENT_BACK, retryable */
  take(signal?: AbortSignal): Promise<WriteTicket>;
  /** Readers wait for this slow batch; null: no longer. */
  noteInFlight(writer: string, stamp: Micros | null): Promise<void>;
  /** Stamps up to it are refused from now on. */
  announce(until: Micros): Promise<void>;
  /** INSERTs of records and suppressions, into any database; a shard may run one that its sender gave up. */
  running(): Promise<readonly RunningInsert[]>;
  /** Suppressions must be readable before. */
  beginGeneration(): Promise<number>;
  /** What an earlier generation judged is refused from now on. */
  requireGeneration(generation: number): Promise<void>;
  noteProcess(process: JobsProcess): Promise<void>;
  processes(): Promise<readonly JobsProcess[]>;
};

/** µs; saves the writer work, and nothing depends on it. */
export const PATIENCE: Micros = 30_000_000;
/** µs without a sign of life. */
const ALIVE_FOR: Micros = 120_000_000;
/** µs that the tables' constraint allows rows by hand. */
const HAND_IS_LATE: Micros = 1_000_000;
const TIMEOUT_MS = 10_000;

export const createCoordination = (deps: { readonly session: Session }): Coordination => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });

  const save = (name: string, value: number): Promise<void> =>
    session.insert(
      "coordination.save",
      { table: "coordination", rows: [{ name, version: value, value }] },
      { settings: { insert_deduplicate: 0 } },
    );

  const say = (name: string, value: number): Promise<void> =>
    session.command(
      "coordination.say",
      "INSERT INTO coordination SELECT {name:String}, toUnixTimestamp64Micro(now64(6)), toUInt64({value:Int64})",
      { parameters: { name, value } },
    );

  const look = async (signal?: AbortSignal): Promise<Numbers> => {
    const [row] = await session.rows<Record<keyof Numbers, string>>(
      "coordination.look",
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

  const running = async (): Promise<RunningInsert[]> => {
    const rows = await session.rows<{ id: string; stamp: string | null }>(
      "coordination.running",
      `SELECT initial_query_id AS id, if(${OF_RECORDS},
          toString(ifNull(toInt64OrNull(extract(initial_query_id, '^uploaded-(\\\\d+)-')),
            toUnixTimestamp64Micro(now64(6)) - toInt64(elapsed * 1000000) - ${HAND_IS_LATE})), NULL) AS stamp
        FROM ${session.names.system("processes")}
        WHERE ${OF_RECORDS} OR startsWith(query, 'INSERT INTO suppressions')`,
    );
    return rows.map(({ id, stamp }) => ({ id, stamp: stamp === null ? null : Number(stamp) }));
  };

  return {
    look,
    take: async (signal) => {
      const { clock, announced, generation } = await look(signal);
      const stamp = Math.max(clock, announced + 1);
      if (stamp <= clock + MAX_AHEAD) return { stamp, generation };
      throw new WarehouseError("warehouse_unavailable", "CLOCK_WENT_BACK", true, undefined);
    },
    noteInFlight: (writer, stamp) => say(`stamp of ${writer}`, stamp ?? 0),
    announce: (until) => save("announced", until),
    running: async () => [
      ...(await running()),
      // A server may be asked before another begins what a third gave up.
      ...(session.names.cluster === null ? [] : await running()),
    ],
    beginGeneration: async () => {
      // Readers of it see the suppressions. By the clock it exceeds former ones after a restore.
      const { clock, generation } = await look();
      const next = Math.max(generation + 1, clock);
      await save("generation", next);
      return next;
    },
    requireGeneration: (generation) => save("required", generation),
    noteProcess: ({ id, redis }) => say(`jobs ${id} ${redis}`, 0),
    processes: async () => {
      const rows = await session.rows<{ name: string }>(
        "coordination.processes",
        `SELECT name FROM coordination WHERE startsWith(name, 'jobs ')
          GROUP BY name HAVING max(version) > toUnixTimestamp64Micro(now64(6)) - ${ALIVE_FOR} ORDER BY max(version)`,
      );
      // An emptied Redis has another id: the latest counts.
      const redisOf = new Map(rows.map(({ name }) => name.split(" ").slice(1) as [string, string]));
      return Array.from(redisOf, ([id, redis]) => ({ id, redis }));
    },
  };
};
