import { setTimeout as sleep } from "node:timers/promises";
import type { ClickHouseClient } from "@clickhouse/client";
import {
  type EventType,
  type ExportRecord,
  formatTimestampZ,
  type Micros,
  monthOf,
  RECORD_TABLES,
  type RecordTable,
  type RightRow,
  type RowKey,
} from "@conversation-export/domain";
import { isRetryable, retry, ServiceError } from "@conversation-export/runtime";
import type { TableInsert } from "./batch.ts";
import { clusterNames } from "./cluster-names.ts";
import { type ConnectionOptions, connect, type WarehouseAccess } from "./connection.ts";
import { hidingStatement } from "./deletion.ts";
import { createEveryServer } from "./every-server.ts";
import { insertHalves } from "./insert-halves.ts";
import { createJobKeys } from "./job-keys.ts";
import { createMergePause } from "./merge-pause.ts";
import type { Topology } from "./migration-template.ts";
import { KEY_COLUMNS } from "./record-keys.ts";
import { recordKey } from "./record-reader.ts";
import { rightInserts } from "./right-inserts.ts";
import { isSetupError, toWarehouseError } from "./warehouse-error.ts";
import type { WriteTicket } from "./write-ticket.ts";
import { createWriter } from "./writer.ts";

export type WrongRow = { readonly clientId: string; readonly id: string; readonly row: RowKey };

/** Rows to write and rows to delete, of records of one type. */
export type Replacement = {
  readonly type: EventType;
  readonly insert: readonly RightRow[];
  readonly remove: readonly WrongRow[];
  /** Tables in which a row to delete has the same key as one to write, and a larger version. */
  readonly outranked: ReadonlySet<RecordTable>;
};

/**
 * Puts right rows into the place of wrong ones, so that no reader misses a record. Only one process at a time may
 * use it, and nobody else may remove rows of records meanwhile. Throws `WarehouseError`.
 */
export type RowReplacer = {
  /** Gives up what a process left that has died in the middle: its deletions end and merges go on. */
  recover(): Promise<void>;
  /** The same; lets merges go on also where nothing waits, and forgets keys that were left behind. */
  start(): Promise<void>;
  /**
   * Writes the right rows with what `uploadedAt` gives, then deletes the wrong ones by key and version. Resolves when
   * no query sees these any more, with the records that the warehouse refuses for their data: their rows stay as
   * they are. When it rejects, no deletion waits any more. `run` names their keys, begins with
   * `BACKFILL_RUN` and must be new. `beforeInsert` gives leave for every INSERT; one leave must do while merges are held, for `holdMs` at most.
   */
  replace(
    run: string,
    replacement: Replacement,
    options: {
      readonly uploadedAt: () => Micros;
      readonly beforeInsert: () => Promise<WriteTicket>;
      readonly signal: AbortSignal;
    },
  ): Promise<readonly ExportRecord[]>;
  close(): Promise<void>;
};

/** Shorter than a leave to write and than a lock are good for. */
const HOLD_MS = 15_000;
/** How long deletions that were begun may go on when the work is to stop. */
const END_MS = 5_000;
/** Beyond so many all partitions are looked at in one go. */
const MAX_PARTITIONS = 12;
/** How the names of runs begin, so that what is left of one can be told. */
export const BACKFILL_RUN = "backfill ";
const KEYS_IN_INSERT = 50_000;
const ASK_EVERY_MS = 100;
const ANSWER_MS = 10_000;

const removalCondition = (table: RecordTable, keys: string): string => {
  const { id, date } = KEY_COLUMNS[table];
  const isHandoff = table === "handoffs";
  const columns = ["client_id", ...(date === null ? [] : [date]), id];
  const noted = ["client_id", ...(date === null ? [] : ["date_created"]), "id"];
  if (isHandoff) {
    columns.push("target", "toUInt8(target_kind)");
    noted.push("target", "target_kind");
  }
  columns.push("version");
  noted.push(isHandoff ? "version" : "toUInt128(version)");
  return `(${columns.join(", ")}) IN
    (SELECT ${noted.join(", ")} FROM ${keys} WHERE run_id = {run:String} AND kind = {table:String})`;
};

/** The id of a month's partition. */
const partitionOf = (date: Micros): string => {
  const month = monthOf(date);
  return String(Math.floor(month / 12) * 100 + (month % 12) + 1);
};

/** The partitions of a table in which rows lie; null when that does not narrow it down. */
const partitionsOf = (table: RecordTable, wrong: readonly WrongRow[]): readonly string[] | null => {
  if (KEY_COLUMNS[table].date === null) return null;
  const partitions = new Set<string>();
  for (const { row } of wrong) if (row.table === table) partitions.add(partitionOf(row.date));
  return partitions.size > MAX_PARTITIONS ? null : [...partitions];
};

/** What is left when records are left alone. */
const without = (replacement: Replacement, refused: ReadonlySet<string>): Replacement => ({
  ...replacement,
  insert: replacement.insert.filter(({ record }) => !refused.has(recordKey(record.clientId, record.id))),
  remove: replacement.remove.filter(({ clientId, id }) => !refused.has(recordKey(clientId, id))),
});

/**
 * `url`: `http://user:password@host:port/database` of the user for jobs.
 * @param deps.holdMs how long writing may take while merges are held
 */
export function createRowReplacer(
  deps: WarehouseAccess & {
    readonly topology: Topology;
    readonly holdMs?: number;
  },
): RowReplacer {
  const { topology, holdMs = HOLD_MS } = deps;
  const { local, on, system } = clusterNames(topology);
  const closing = new AbortController();
  const connection: ConnectionOptions = {
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      // The keys of a run do not change any more.
      allow_nondeterministic_mutations: 1,
    },
  };
  const client: ClickHouseClient = connect(connection);
  const servers = createEveryServer({ ...connection, topology });
  const writer = createWriter(deps);
  const keys = createJobKeys({ client, servers, topology });
  const pause = createMergePause({ servers, topology, signal: closing.signal });

  const noteKeys = async (run: string, wrong: readonly WrongRow[]): Promise<void> => {
    for (let at = 0; at < wrong.length; at += KEYS_IN_INSERT) {
      await client.insert({
        table: "job_keys",
        values: wrong.slice(at, at + KEYS_IN_INSERT).map(({ clientId, id, row }) => ({
          run_id: run,
          kind: row.table,
          client_id: clientId,
          id,
          date_created: formatTimestampZ(row.date),
          target: row.target,
          target_kind: row.targetKind,
          version: String(row.version),
        })),
        format: "JSONEachRow",
      });
    }
  };

  /** Runs of which deletions may wait. */
  const begun = new Set<string>();

  /** Begins to delete the noted rows of a table; while its merges are held, nothing happens yet. */
  const submit = async (run: string, table: RecordTable, wrong: readonly WrongRow[]): Promise<void> => {
    const condition = removalCondition(table, local("job_keys"));
    begun.add(run);
    for (const partition of partitionsOf(table, wrong) ?? [undefined]) {
      await servers.command({
        query: hidingStatement(table, topology, condition, partition),
        query_params: { run, table },
        clickhouse_settings: { lightweight_deletes_sync: "0", mutations_sync: "0" },
      });
    }
  };

  const OF_RUNS = "database = currentDatabase() AND NOT is_done AND position(command, {runs:String}) > 0";
  /** How the commands of a run begin to name it; of all runs without one. */
  const inCommand = (run?: string): string => (run === undefined ? `'${BACKFILL_RUN}` : `'${run}'`);

  const mutationsOf = async (run?: string): Promise<readonly { table: string; failed: 0 | 1 }[]> => {
    const result = await client.query({
      // Holding merges aborts mutations that run; they begin again.
      query: `SELECT table, toUInt8(latest_fail_reason NOT IN ('') AND position(latest_fail_reason, 'ABORTED') = 0)
          AS failed
        FROM ${system("mutations")} WHERE ${OF_RUNS}`,
      query_params: { runs: inCommand(run) },
      format: "JSONEachRow",
    });
    return result.json<{ table: string; failed: 0 | 1 }>();
  };

  const untilDeleted = async (run: string, signal: AbortSignal): Promise<void> => {
    for (;;) {
      signal.throwIfAborted();
      const left = await mutationsOf(run);
      if (left.length === 0) return;
      if (left.some(({ failed }) => failed === 1)) {
        // Without what ClickHouse says about it, which may repeat a row.
        throw new ServiceError("deletion_failed", "ClickHouse could not delete rows yet", {
          retryable: true,
        });
      }
      await sleep(ASK_EVERY_MS, undefined, { signal });
    }
  };

  /** Ends the deletions of a run, or of all, that are not done: what they have not deleted stays. */
  const kill = (run?: string): Promise<void> =>
    retry(
      async () => {
        try {
          await servers.command({
            query: `KILL MUTATION ${on} WHERE ${OF_RUNS} SYNC`,
            query_params: { runs: inCommand(run) },
            abort_signal: AbortSignal.timeout(ANSWER_MS),
          });
        } catch (error) {
          throw toWarehouseError(error);
        }
      },
      {
        signal: closing.signal,
        maxMs: 1_000,
        retryable: (error) => isRetryable(error) && !isSetupError(error),
      },
    );

  const recover = async (tables: readonly RecordTable[]): Promise<void> => {
    const left = new Set((await mutationsOf()).map(({ table }) => table));
    // What a hold has not written must not be deleted.
    if (left.size > 0) await kill();
    await pause.release(RECORD_TABLES.filter((table) => tables.includes(table) || left.has(local(table))));
  };

  /** Gives the records that are refused; when there are any, nothing is deleted. */
  const attempt = async (
    run: string,
    { insert, remove, outranked }: Replacement,
    {
      uploadedAt,
      beforeInsert,
      signal,
    }: {
      readonly uploadedAt: () => Micros;
      readonly beforeInsert: () => Promise<WriteTicket>;
      readonly signal: AbortSignal;
    },
  ): Promise<ReadonlyMap<string, ExportRecord>> => {
    const refused = new Map<string, ExportRecord>();
    const write = async (one: (insert: TableInsert) => Promise<void>): Promise<void> => {
      for (const batch of rightInserts(insert, uploadedAt())) {
        for (const index of await insertHalves(batch, 0, batch.records.length, one)) {
          const record = batch.records[index];
          if (record !== undefined) refused.set(recordKey(record.clientId, record.id), record);
        }
      }
    };
    const wrongIn = new Set(remove.map(({ row }) => row.table));
    const held = [...wrongIn].filter((table) => outranked.has(table));
    const others = [...wrongIn].filter((table) => !outranked.has(table));
    await noteKeys(run, remove);
    if (held.length === 0) {
      await write(async (one) => writer.insert(one, signal, await beforeInsert()));
      if (refused.size > 0) return refused;
    } else {
      const ticket = await beforeInsert();
      signal.throwIfAborted();
      // A merge of both rows would drop the right one, which has the smaller version. The deletion is submitted
      // first, so that it leaves the parts of the right rows alone and no merge joins them to older ones; it is
      // held until they are there, so that no reader misses them. It must not begin without them: what was begun
      // here is ended, whoever wants the job to stop.
      const late = AbortSignal.timeout(holdMs);
      const hold = async (): Promise<void> => {
        for (const table of held) await submit(run, table, remove);
        await write((one) =>
          retry(() => writer.insert(one, late, ticket), {
            signal: late,
            maxMs: 1_000,
            retryable: isRetryable,
          }),
        );
        if (refused.size > 0) throw new RefusedRows();
      };
      try {
        await pause.during(held, hold, () => kill(run));
      } catch (error) {
        if (error instanceof RefusedRows) return refused;
        if (!late.aborted) throw error;
        throw new ServiceError("hold_too_long", "rows could not be written while merges were held", {
          retryable: true,
        });
      }
    }
    for (const table of others) {
      signal.throwIfAborted();
      await submit(run, table, remove);
    }
    await untilDeleted(run, signal);
    return refused;
  };

  return {
    async recover() {
      try {
        await recover([]);
      } catch (error) {
        throw toWarehouseErrorUnlessService(error);
      }
    },
    async start() {
      try {
        await recover(RECORD_TABLES);
        await keys.forgetLeft(BACKFILL_RUN);
      } catch (error) {
        throw toWarehouseErrorUnlessService(error);
      }
    },
    async replace(name, replacement, options) {
      const { signal } = options;
      const refused = new Map<string, ExportRecord>();
      for (let at = 1; ; at += 1) {
        const run = `${name}/${at}`;
        try {
          signal.throwIfAborted();
          const more = await attempt(run, without(replacement, new Set(refused.keys())), options);
          if (more.size === 0) return [...refused.values()];
          for (const [key, record] of more) refused.set(key, record);
        } catch (error) {
          // Who looks at the rows next must find no deletion that still waits.
          if (begun.has(run)) {
            if (signal.aborted) await untilDeleted(run, AbortSignal.timeout(END_MS)).catch(() => {});
            await kill(run);
          }
          signal.throwIfAborted();
          throw toWarehouseErrorUnlessService(error);
        } finally {
          begun.delete(run);
          // What cannot be forgotten now is when a process starts.
          await keys.forget(run).catch(() => {});
        }
      }
    },
    async close() {
      closing.abort(new ServiceError("stopped", "stopped while waiting for ClickHouse"));
      await writer.close();
      await servers.close();
      await client.close();
    },
  };
}

/** Ends a hold in which some rows were refused. */
class RefusedRows extends Error {}

const toWarehouseErrorUnlessService = (error: unknown): unknown =>
  error instanceof ServiceError ? error : toWarehouseError(error);
