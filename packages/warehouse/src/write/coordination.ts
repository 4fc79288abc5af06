/** One set of numbers for all processes that write to the same tables; it outlives them. */
import type { Micros, WriteTicket } from "@conversation-export/domain";
import { WarehouseError } from "../session/warehouse-error.ts";
import type { Session } from "../session/session.ts";
import { MAX_AHEAD, OF_RECORDS } from "./write-ticket.ts";

/** `clock`: ClickHouse's, µs. Stamps up to `announced` are rejected; readers wait for `inFlight`. */
export type Numbers = {
  readonly clock: Micros;
  readonly announced: Micros;
  readonly generation: number;
  readonly inFlight: Micros | null;
};

/** `stamp`: of its rows, or as early as it may be; null: of suppressions. */
export type RunningInsert = { readonly id: string; readonly stamp: Micros | null };

/** Names of the process and of its Redis; neither has a blank. */
export type JobsProcess = { readonly id: string; readonly redis: string };

/** Of a process that has not reached its Redis yet. */
export const UNKNOWN_REDIS = "unknown";

/** @throws WarehouseError from every method */
export type Coordination = {
  look(signal?: AbortSignal): Promise<Numbers>;
  /**
   * Stamp: ClickHouse's clock, or `announced` + 1 µs.
   * @throws WarehouseError CLOCK_WENT_BACK, retryable, while the clock is far behind
   */
  take(signal?: AbortSignal): Promise<WriteTicket>;
  /** Asks readers to wait for a slow batch; null: no longer. `writer`: names the process. */
  noteInFlight(writer: string, stamp: Micros | null): Promise<void>;
  /** From now on stamps up to this instant are refused. */
  announce(until: Micros): Promise<void>;
  /** INSERTs of records and suppressions into any database; a shard may still run one that its sender gave up. */
  running(): Promise<readonly RunningInsert[]>;
  /** Call it once the suppressions are readable; writers then judge by them. */
  beginGeneration(): Promise<number>;
  /** From now on what an earlier generation judged is refused. */
  requireGeneration(generation: number): Promise<void>;
  /** Alive for the next two minutes. */
  noteProcess(process: JobsProcess): Promise<void>;
  /** Those alive. */
  processes(): Promise<readonly JobsProcess[]>;
};

/** µs that readers wait for a slow batch; it saves the writer work, and nothing depends on it. */
export const PATIENCE: Micros = 30_000_000;
/** µs without a note after which a process is gone. */
const ALIVE_FOR: Micros = 120_000_000;
/** µs; the constraint of the tables lets rows by hand be so old. */
const HAND_IS_LATE: Micros = 1_000_000;
const TIMEOUT_MS = 10_000;

/** `session`: of a user who writes records; of the user for jobs for what writers do not do. */
export const createCoordination = (deps: { readonly session: Session }): Coordination => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });

  const save = (name: string, value: number): Promise<void> =>
    session.insert(
      "coordination.save",
      { table: "coordination", rows: [{ name, version: value, value }] },
      { settings: { async_insert: 0, insert_deduplicate: 0 } },
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
      // A server may be asked before another begins what a third one has given up.
      ...(session.names.cluster === null ? [] : await running()),
    ],
    beginGeneration: async () => {
      // Readers of this number see the suppressions. The clock keeps it above former ones after a restore.
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
      // A Redis that was emptied has another id since: the latest counts.
      const redisOf = new Map(rows.map(({ name }) => name.split(" ").slice(1) as [string, string]));
      return Array.from(redisOf, ([id, redis]) => ({ id, redis }));
    },
  };
};
