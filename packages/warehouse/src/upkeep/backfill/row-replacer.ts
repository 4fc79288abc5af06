import {
  type EventType,
  type ExportRecord,
  type Micros,
  RECORD_TABLES,
  type RecordTable,
  type RightRow,
  TABLE_FACTS,
} from "@conversation-export/domain";
import { isRetryable, retry, ServiceError } from "@conversation-export/runtime";
import { noteDeleted, type RunUpload } from "../../changes/deletion-entries.ts";
import type { TableInsert } from "../../write/batch.ts";
import type { Session } from "../../session/session.ts";
import { insertHalves } from "../../write/insert-halves.ts";
import { createJobKeys } from "../job-keys.ts";
import { createMergePause } from "./merge-pause.ts";
import { recordKey } from "./record-reader.ts";
import { rightInserts } from "../../write/right-inserts.ts";
import type { WriteTicket } from "../../write/write-ticket.ts";
import { createWriter } from "../../write/writer.ts";
import { BACKFILL_RUN, createRowDeletions, type WrongRow } from "./row-deletions.ts";

/** Right rows to insert and wrong rows to delete, of one type of record. */
export type Replacement = {
  readonly type: EventType;
  readonly insert: readonly RightRow[];
  readonly remove: readonly WrongRow[];
  /** Tables in which a wrong row has the key of a right row and a larger version. */
  readonly outranked: ReadonlySet<RecordTable>;
};

/**
 * Replaces wrong rows by right ones without any reader missing a record. Only one process at a time may use
 * it, and no other process may delete rows of records meanwhile.
 *
 * @throws WarehouseError from every method
 */
export type RowReplacer = {
  /**
   * Cleans up after a process that died: cancels its pending deletions, resumes merges, and tells readers of
   * changes what it has deleted.
   */
  recover(): Promise<void>;
  /** Does the same at the start of a process; also resumes merges of all tables and removes leftover keys. */
  start(): Promise<void>;
  /**
   * Inserts the right rows with the upload instant of `uploadedAt`, then deletes the wrong ones by key and
   * version. Resolves when no query sees the wrong rows any more. When it rejects, no deletion is pending any
   * more.
   *
   * @param run names the keys of the run; begins with `BACKFILL_RUN` and must be new
   * @param options.beforeInsert returns the ticket for an INSERT. While merges are held, for at most
   *   `holdMs`, one ticket is used for all INSERTs
   * @returns the records that the warehouse refuses for their data; their rows stay unchanged
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
  /** Ends all waiting for ClickHouse. */
  stop(): void;
};

/** Limit of a hold; shorter than the validity of a write ticket and of the lock. */
const HOLD_MS = 15_000;
/** How long a stop waits for deletions that have begun, before it cancels them. */
const END_MS = 5_000;
/** Tables whose rows readers see. An entry of the update index shows nothing by itself. */
const TOLD = RECORD_TABLES.map((table) => TABLE_FACTS[table]).filter(
  ({ keyDate, created }) => keyDate === null || keyDate === created,
);
/** SQL: the kind of record that the table holds which a row `k` of job_keys names. */
const KIND_OF_TABLE = `transform(k.kind, [${TOLD.map(({ name }) => `'${name}'`).join()}],
      [${TOLD.map(({ kind }) => `'${kind}'`).join()}])`;

/** The replacement without the rows of refused records. */
const without = (replacement: Replacement, refused: ReadonlySet<string>): Replacement => ({
  ...replacement,
  insert: replacement.insert.filter(({ record }) => !refused.has(recordKey(record.clientId, record.id))),
  remove: replacement.remove.filter(({ clientId, id }) => !refused.has(recordKey(clientId, id))),
});

/**
 * @param deps.session of the user for jobs
 * @param deps.holdMs time limit for inserting while merges are held
 */
export function createRowReplacer(deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
  readonly holdMs?: number;
}): RowReplacer {
  const { holdMs = HOLD_MS, runUpload } = deps;
  const stopping = new AbortController();
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      // Allows subqueries in mutations. They read the keys of a run, which do not change.
      allow_nondeterministic_mutations: 1,
    },
  });
  const { local } = session.names;
  const writer = createWriter(deps);
  const keys = createJobKeys({ session });
  const pause = createMergePause({ session, signal: stopping.signal });
  const deletions = createRowDeletions({ session, signal: stopping.signal });

  const recover = async (tables: readonly RecordTable[]): Promise<void> => {
    const left = new Set((await deletions.waiting()).map(({ table }) => table));
    // A hold that broke off may not have inserted the right rows, so its deletions must not run.
    if (left.size > 0) await deletions.end();
    await pause.release(RECORD_TABLES.filter((table) => tables.includes(table) || left.has(local(table))));
  };

  /** Tells readers of changes about records of which rows were deleted, whatever they show then. */
  const tell = (runPrefix: string): Promise<void> => {
    const source = `SELECT client_id, ${KIND_OF_TABLE} AS kind, id, date_created FROM job_keys AS k
      WHERE startsWith(run_id, {run:String}) AND k.kind IN (${TOLD.map(({ name }) => `'${name}'`).join()})`;
    const parameters = { run: runPrefix };
    return runUpload((upload) => noteDeleted(session, { name: "replace.tell", source, parameters }, upload));
  };

  /** Returns the refused records. If there are any, nothing is deleted. */
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
    await deletions.note(run, remove);
    if (held.length === 0) {
      await write(async (one) => writer.insert(one, signal, await beforeInsert()));
      if (refused.size > 0) return refused;
    } else {
      const ticket = await beforeInsert();
      signal.throwIfAborted();
      // A merge of both rows would drop the right one, which has the smaller version. So the deletion is
      // submitted first: it then skips the parts of the right rows, and no merge joins these with older
      // parts. It is held until the right rows are inserted, so that no reader misses the record. It must not
      // run without them: even when the job is stopped, the hold is completed or its deletion cancelled.
      const late = AbortSignal.timeout(holdMs);
      const hold = async (): Promise<void> => {
        for (const table of held) await deletions.submit(run, table, remove);
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
        await pause.during(held, hold, () => deletions.end(run));
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
      await deletions.submit(run, table, remove);
    }
    await deletions.untilDone(run, signal);
    return refused;
  };

  return {
    async recover() {
      await recover([]);
      await tell(BACKFILL_RUN);
    },
    async start() {
      await recover(RECORD_TABLES);
      await tell(BACKFILL_RUN);
      await keys.forgetLeft(BACKFILL_RUN);
    },
    async replace(name, replacement, options) {
      const { signal } = options;
      const refused = new Map<string, ExportRecord>();
      for (let at = 1; ; at += 1) {
        const run = `${name}/${at}`;
        let isDone = false;
        try {
          signal.throwIfAborted();
          const more = await attempt(run, without(replacement, new Set(refused.keys())), options);
          isDone = true;
          if (more.size === 0) return [...refused.values()];
          for (const [key, record] of more) refused.set(key, record);
        } catch (error) {
          // No deletion may be pending when the next process reads these rows.
          if (deletions.hasBegun(run)) {
            if (signal.aborted) await deletions.untilDone(run, AbortSignal.timeout(END_MS)).catch(() => {});
            await deletions.end(run);
          }
          signal.throwIfAborted();
          throw error;
        } finally {
          deletions.settle(run);
          // On failure, the keys are told when rows are deleted next, and removed by a later process.
          const told = tell(run).then(() => keys.forget(run).catch(() => {}));
          await (isDone ? told : told.catch(() => {}));
        }
      }
    },
    stop: () => stopping.abort(new ServiceError("stopped", "stopped while waiting for ClickHouse")),
  };
}

/** Aborts a hold in which the warehouse has refused rows. */
class RefusedRows extends Error {}
