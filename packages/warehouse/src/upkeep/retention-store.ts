import { type Micros, RECORD_KINDS } from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import { noteDeleted, type RunUpload } from "../changes/deletion-entries.ts";
import { CHANGES } from "../tables/changes.ts";
import { DATED_KINDS, type DatedKind } from "../tables/record-dates.ts";
import type { Session, StatementName } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { createDeletion, WITH_HIDDEN } from "./deletion.ts";
import { countOlder, noteMoved, SETTLED } from "./expired-records.ts";
import { CONDITIONS, type RetentionTable, STALE, TOLD } from "./expired-rows.ts";
import type { Alive } from "./job-keys.ts";
import { createRetentionRuns } from "./retention-runs.ts";

/** Records of the client from before this instant are expired. */
export type Cutoff = { readonly clientId: string; readonly before: Micros };

/**
 * The records that are expired at one moment. Conversations (with handoffs and updates) and messages expire
 * by their date of creation; of several dates, that of the latest export counts for all rows. End users
 * expire by the latest update date of any of their versions: a profile is kept while its person keeps coming
 * back.
 */
export type Expired = {
  /**
   * Counts stored rows by client, superseded and masked ones included; of changes all that readers are told
   * of, also those that stay for now.
   * @throws ServiceError `keys_lost` (retryable), also `erase`
   */
  count(table: RetentionTable, signal?: AbortSignal): Promise<{ clientId: string; rows: number }[]>;
  /**
   * Removes these rows from all active parts. `dropped`: rows of parts that held only expired rows and were
   * dropped whole; other parts are rewritten.
   */
  erase(table: RetentionTable, signal?: AbortSignal): Promise<{ dropped: number }>;
  /**
   * Tells readers of changes what a run that failed has not told, and removes the keys of the found records.
   * No other method may be called afterwards. What it cannot do is left to a sweep.
   * @throws ServiceError `deletion_under_way` (retryable)
   */
  end(): Promise<void>;
};

/** @throws WarehouseError from every method */
export type RetentionStore = {
  /** ClickHouse's clock in milliseconds. */
  serverTime(): Promise<number>;
  /**
   * Tells readers of changes what runs that are over have not told, and removes their keys: runs of dead
   * processes, and those of this one whose `end` could not.
   *
   * @throws ServiceError `deletion_under_way` (retryable)
   */
  sweep(alive: Alive, signal?: AbortSignal): Promise<void>;
  /** Begins a run, after such a sweep unless a deletion is under way. */
  expired(cutoffs: readonly Cutoff[], alive: Alive, signal?: AbortSignal): Promise<Expired>;
};

/** Longer than ingest keeps a batch in flight with the same upload instant. */
const ON_THE_WAY = "INTERVAL 10 MINUTE";
/** Ids of expired rows that are looked up at a time. */
const MAX_IDS = 2_000_000;

/** The date of the latest update; masked rows count only for end users without any other row. */
const LATEST_UPDATE = "if(max(_row_exists) = 1, maxIf(date_updated, _row_exists = 1), max(date_updated))";

/**
 * @param deps.session of the user for jobs
 * @param deps.holder names this process
 */
export const createRetentionStore = (deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
  readonly holder: string;
}): RetentionStore => {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    // A projection would still show rows that are masked in its table.
    settings: { output_format_json_quote_64bit_integers: 0, optimize_use_projections: 0 },
  });
  const { cluster } = session.names;
  const deletion = createDeletion(deps);

  const select = <Row>(
    name: StatementName,
    query: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<Row[]> => session.rows<Row>(name, query, { parameters, settings: WITH_HIDDEN, signal });

  const isGone = (error: unknown): boolean =>
    error instanceof WarehouseError && error.causeName === "NO_SUCH_DATA_PART";

  /**
   * Drops parts whose rows are all expired. Parts are immutable, so no row that arrives meanwhile is lost.
   */
  const dropParts = async (
    table: RetentionTable,
    parameters: object,
    signal: AbortSignal | undefined,
  ): Promise<number> => {
    const parts = await select<{ name: string; rows: number }>(
      "retention.parts",
      `SELECT name, rows FROM system.parts
       WHERE database = currentDatabase() AND table = {table:String} AND active AND rows > 0
         AND (name, rows) IN (SELECT _part, count() FROM ${table} WHERE ${CONDITIONS[table]} GROUP BY _part)`,
      { ...parameters, table },
      signal,
    );
    let dropped = 0;
    for (const { name, rows } of parts) {
      signal?.throwIfAborted();
      try {
        const query = `ALTER TABLE ${table} DROP PART {name:String}`;
        await session.command("retention.drop_part", query, { parameters: { name }, signal });
        dropped += rows;
      } catch (error) {
        // Merged meanwhile: `erase` removes its rows from the new part.
        if (!isGone(error)) throw error;
      }
    }
    return dropped;
  };

  /** The table to read `_row_exists` from: a distributed table has no such column. */
  const rowsOf = (table: string): string =>
    cluster === null ? table : `clusterAllReplicas('${cluster}', currentDatabase(), '${table}_local')`;

  /** Rewrites the parts that hold the rows. A deletion does not find masked ones. */
  const cutOut = async (
    rows: { readonly table: RetentionTable; readonly condition: string },
    parameters: Readonly<Record<string, unknown>>,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const partitions = await select<{ id: string; visible: number; hidden: number }>(
      "retention.partitions",
      `SELECT _partition_id AS id, countIf(_row_exists = 1) AS visible, countIf(_row_exists = 0) AS hidden
        FROM ${rowsOf(rows.table)} WHERE ${rows.condition} GROUP BY id`,
      parameters,
      signal,
    );
    signal?.throwIfAborted();
    if (partitions.some(({ visible }) => visible > 0)) await deletion.erase({ ...rows, parameters }, signal);
    for (const { id } of partitions.filter(({ hidden }) => hidden > 0)) {
      signal?.throwIfAborted();
      await deletion.dropMasked(rows.table, id, signal);
    }
  };

  /** Notes which records with several dates are expired, and which are not. */
  const noteMovedOf = async (
    kind: DatedKind,
    parameters: Readonly<Record<string, unknown>>,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const own = RECORD_KINDS[kind].tables.at(-1);
    if (own === undefined) throw new TypeError(`${kind} has no table`);
    const sources = {
      // An entry of the update index stands under the date of its record.
      tables: RECORD_KINDS[kind].tables.filter(({ keyDate, created }) => keyDate === created),
      own: { from: rowsOf(own.name), id: own.id },
    };
    const [older] = await select<{ n: number }>("retention.older", countOlder(sources), parameters, signal);
    const chunks = Math.ceil((older?.n ?? 0) / MAX_IDS);
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      for (const statement of noteMoved(kind, sources))
        await session.command("retention.note_moved", statement, {
          parameters: { ...parameters, chunk, chunks },
          settings: { async_insert: 0, ...WITH_HIDDEN },
          signal,
        });
    }
  };

  /** Notes end users that are expired, and what is expired of records with several dates. */
  const noteExpired = async (
    parameters: Readonly<Record<string, unknown>>,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    await session.command(
      "retention.note_end_users",
      `INSERT INTO job_keys (run_id, kind, client_id, id)
        SELECT {run:String}, 'end_user', client_id, end_user_id FROM ${rowsOf("end_users")}
        WHERE client_id IN {clients:Array(String)}
        GROUP BY client_id, end_user_id
        HAVING toUnixTimestamp64Micro(${LATEST_UPDATE}) < {cutoffs:Array(Int64)}[indexOf({clients:Array(String)}, client_id)]
          AND max(uploaded_at) < ${SETTLED}`,
      { parameters, settings: { async_insert: 0, ...WITH_HIDDEN }, signal },
    );
    for (const kind of DATED_KINDS) await noteMovedOf(kind, parameters, signal);
  };

  const eraseStale = async (
    parameters: Readonly<Record<string, unknown>>,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const noted = DATED_KINDS.map((kind) => `'stale ${kind}'`).join();
    const query = `SELECT count() AS n FROM job_keys WHERE run_id = {run:String} AND kind IN (${noted})`;
    const [stale] = await select<{ n: number }>("retention.stale", query, parameters, signal);
    if ((stale?.n ?? 0) === 0) return;
    for (const rows of STALE) await cutOut(rows, parameters, signal);
  };

  /** Tells readers of changes about records whose rows are gone. */
  const tell = (
    source: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<void> =>
    deps.runUpload(
      (upload) => noteDeleted(session, { name: "retention.tell", source, parameters, signal }, upload),
      signal,
    );

  const runs = createRetentionRuns({ session, tell, holder: deps.holder });

  return {
    sweep: runs.sweep,
    serverTime: async () => {
      const query = "SELECT toString(toUnixTimestamp64Milli(now64(3))) AS ms";
      const [row] = await session.rows<{ ms: string }>("retention.clock", query);
      if (row === undefined) throw new Error("a SELECT without a row");
      return Number(row.ms);
    },
    expired: async (cutoffs, alive, signal) => {
      const [clock] = await session.rows<{ settled: number }>(
        "retention.settled",
        `SELECT toUnixTimestamp64Micro(now64(6) - ${ON_THE_WAY}) AS settled`,
        { signal },
      );
      await runs.sweep(alive, signal).catch((error: unknown) => {
        if (!(error instanceof ServiceError && error.code === "deletion_under_way")) throw error;
      });
      const run = await runs.begin(signal);
      const parameters = {
        run,
        clients: cutoffs.map(({ clientId }) => clientId),
        cutoffs: cutoffs.map(({ before }) => before),
        latest: Math.max(0, ...cutoffs.map(({ before }) => before)),
        settled: clock?.settled ?? 0,
      };
      try {
        await noteExpired(parameters, signal);
      } catch (error) {
        runs.leave(run);
        throw error;
      }
      let staleAreErased = false;
      let endUsersAreTold = true;
      const tellChanges = async (tellSignal: AbortSignal | undefined): Promise<void> => {
        const sql = `SELECT count() AS n FROM ${CHANGES} WHERE ${TOLD}`;
        const [told] = await select<{ n: number }>("retention.count", sql, parameters, tellSignal);
        const chunks = Math.ceil((told?.n ?? 0) / MAX_IDS);
        for (let chunk = 0; chunk < chunks; chunk += 1) {
          const source = `SELECT client_id, kind, id, date_created FROM ${CHANGES}
            WHERE ${TOLD} AND cityHash64(client_id, id) % {chunks:UInt32} = {chunk:UInt32}`;
          await tell(source, { ...parameters, chunk, chunks }, tellSignal);
        }
      };
      return {
        count: async (table, countSignal) => {
          const counts = await select<{ clientId: string; rows: number }>(
            "retention.count",
            `SELECT client_id AS clientId, count() AS rows FROM ${table}
             WHERE ${table === CHANGES ? TOLD : CONDITIONS[table]}
             GROUP BY client_id ORDER BY client_id`,
            parameters,
            countSignal,
          );
          await runs.assertKept(run);
          return counts;
        },
        erase: async (table, eraseSignal) => {
          if (!staleAreErased) await eraseStale(parameters, eraseSignal);
          staleAreErased = true;
          if (table === "end_users") endUsersAreTold = false;
          if (table === CHANGES) {
            await tellChanges(eraseSignal);
            await runs.assertKept(run);
            endUsersAreTold = true;
          }
          // Not on a cluster: the servers use the same names for different parts.
          const dropped = cluster === null ? await dropParts(table, parameters, eraseSignal) : 0;
          await cutOut({ table, condition: CONDITIONS[table] }, parameters, eraseSignal);
          await runs.assertKept(run);
          return { dropped };
        },
        end: () => runs.end(run, endUsersAreTold),
      };
    },
  };
};
