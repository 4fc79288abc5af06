import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import {
  type CleanupScope,
  type CleanupShare,
  FINDING,
  FINDING_OTHERS,
  HAS_NO_ENTRY,
  LIVE,
  MOVE_HANDOFFS,
  NOTING,
  RESTORE_ENTRIES,
  windowsOf,
} from "./cleanup-statements.ts";

export type FoundKeys = {
  /** Entries of the update index that newer exports of these windows have superseded. */
  readonly supersededUpdates: number;
  /** Conversations and messages with rows under more than one date of creation. */
  readonly movedRecords: number;
  /** Their handoffs under dates other than that of the latest export. */
  readonly movedHandoffs: number;
  /** Partitions in which rows will be masked. */
  readonly partitions: readonly { readonly table: string; readonly partition: string }[];
};

/**
 * Finds and removes rows that no reader needs. Keys are stored under the unique id of the run from `begin` to
 * `forget`. All steps may be repeated. No other process may delete rows between `find` and the end of
 * `remove`.
 *
 * @throws WarehouseError from every method
 */
export type CleanupStore = {
  /**
   * Notes the records that were written in the windows and returns how many. Removes the keys of earlier
   * runs.
   */
  begin(run: string, scope: CleanupScope, signal?: AbortSignal): Promise<number>;
  /** Collects the keys of a share. Readers see no change. */
  find(run: string, share: CleanupShare, signal?: AbortSignal): Promise<FoundKeys>;
  /**
   * Moves handoffs to the date of the latest export (per target the larger version wins, specification 2.1,
   * handoffs rule 5), then masks the collected rows by key and version. Afterwards restores missing entries
   * of the update index for versions that have become live meanwhile.
   */
  remove(run: string, share: CleanupShare, found: FoundKeys, signal?: AbortSignal): Promise<void>;
  /** Removes the keys of all runs, including those that died. */
  forget(): Promise<void>;
};

/** @param deps.session of the user for jobs */
export function createCleanupStore(deps: { readonly session: Session }): CleanupStore {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      // A projection would still show rows that are masked in its table.
      optimize_use_projections: 0,
      output_format_json_quote_64bit_integers: 0,
      // All rows of a record lie on one shard.
      distributed_product_mode: "local",
      // Above this memory, the grouping of keys spills to disk.
      max_bytes_before_external_group_by: "1000000000",
      join_use_nulls: 0,
    },
  });
  const deletion = createDeletion(deps);
  const { local, target, system } = session.names;
  const keysTable = local("compaction_keys");

  /** Masks the rows of `table` whose `columns` are among the `keys` of a kind. */
  function mask(run: string, table: string, kind: string, columns: string, keys: string) {
    return deletion.mask({
      table,
      condition: `(${columns}) IN (SELECT ${keys} FROM ${keysTable} WHERE run_id = {run:String} AND kind = {kind:String})`,
      parameters: { run, kind },
    });
  }

  // Dropping partitions is immediate; a deletion would rewrite their parts.
  async function forget(): Promise<void> {
    const runs = await session.rows<{ id: string }>(
      "cleanup.runs",
      `SELECT DISTINCT partition_id AS id FROM ${system("parts")}
        WHERE active AND database = currentDatabase() AND table = {table:String}`,
      { parameters: { table: keysTable } },
    );
    for (const { id } of runs) {
      const query = `ALTER TABLE ${target("compaction_keys")} DROP PARTITION ID '${partitionId(id)}'`;
      await session.commandEverywhere("cleanup.forget", query);
    }
  }

  /** Inserts the missing entries of live records into the update index. */
  async function restoreEntries(run: string): Promise<void> {
    const parameters = { run };
    const [row] = await session.rows<{ n: number }>(
      "cleanup.entries_missing",
      `SELECT count() AS n FROM (${LIVE}) WHERE ${HAS_NO_ENTRY}`,
      { parameters },
    );
    if (row !== undefined && row.n > 0)
      await session.command("cleanup.restore_entries", RESTORE_ENTRIES, { parameters });
  }

  return {
    forget,
    async begin(id, scope, signal) {
      const run = PREFIX + id;
      await forget();
      const parameters = { run, ...windowsOf(scope) };
      for (const statement of NOTING)
        await session.command("cleanup.note_written", statement, { parameters, signal });
      const [row] = await session.rows<{ n: number }>(
        "cleanup.count_written",
        "SELECT count() AS n FROM compaction_keys WHERE run_id = {run:String}",
        { parameters: { run } },
      );
      return row?.n ?? 0;
    },
    async find(id, share, signal) {
      const { chunk, chunks } = share;
      const run = runOf(id, share);
      const parameters = { windows: PREFIX + id, run, ...windowsOf(share), chunk, chunks };
      for (const statement of FINDING)
        await session.command("cleanup.find", statement, { parameters, signal });
      const [doubles] = await session.rows<{ n: number }>(
        "cleanup.count_doubles",
        "SELECT count() AS n FROM compaction_keys WHERE run_id = {run:String} AND kind != 'superseded'",
        { parameters: { run } },
      );
      // Records under several dates are rare, so their rows are searched only if there are any.
      if (doubles !== undefined && doubles.n > 0)
        for (const statement of FINDING_OTHERS)
          await session.command("cleanup.find_others", statement, { parameters, signal });
      const [counts] = await session.rows<Omit<FoundKeys, "partitions">>(
        "cleanup.count_found",
        `SELECT countIf(kind = 'superseded') AS supersededUpdates, countIf(kind = 'other handoff') AS movedHandoffs,
            uniqExactIf((client_id, kind, id), kind IN ('other conversation', 'other message')) AS movedRecords
          FROM compaction_keys WHERE run_id = {run:String}`,
        { parameters: { run } },
      );
      if (counts === undefined) throw new Error("an aggregation without a row");
      const partitions = await session.rows<{ table: string; partition: string }>(
        "cleanup.partitions",
        `SELECT DISTINCT tables[kind] AS table, toString(toYYYYMM(key_date)) AS partition FROM (
            SELECT *, map('superseded', 'conversation_updates', 'other update', 'conversation_updates',
              'other conversation', 'conversations', 'other handoff', 'handoffs', 'other message', 'messages') AS tables
            FROM compaction_keys WHERE run_id = {run:String} AND mapContains(tables, kind))`,
        { parameters: { run } },
      );
      return { ...counts, partitions };
    },
    async remove(id, share, found, signal) {
      if (found.partitions.length === 0) return;
      const run = runOf(id, share);
      const tables = new Set(found.partitions.map(({ table }) => table));
      const updates = "client_id, date_updated, conversation_id, version";
      const records = (name: string): string => `client_id, date_created, ${name}, version`;
      const keys = "client_id, key_date, id, toUInt128(version)";
      // Checked only between statements: a running one would go on in ClickHouse, so it is awaited even on a
      // stop.
      const mayGoOn = (): void => signal?.throwIfAborted();
      try {
        mayGoOn();
        if (tables.has("conversation_updates"))
          await mask(run, "conversation_updates", "superseded", updates, keys);
        mayGoOn();
        if (found.movedHandoffs > 0)
          await session.command("cleanup.move_handoffs", MOVE_HANDOFFS, { parameters: { run } });
        // The handoffs last: by them the next run finds the record again if this one breaks off.
        mayGoOn();
        if (tables.has("conversation_updates"))
          await mask(run, "conversation_updates", "other update", updates, keys);
        mayGoOn();
        if (tables.has("conversations"))
          await mask(run, "conversations", "other conversation", records("conversation_id"), keys);
        mayGoOn();
        if (tables.has("messages")) await mask(run, "messages", "other message", records("message_id"), keys);
        mayGoOn();
        if (tables.has("handoffs")) {
          const columns =
            "client_id, conversation_date_created, conversation_id, target, toUInt8(target_kind), version";
          const handoffKeys = "client_id, key_date, id, target, target_kind, version";
          await mask(run, "handoffs", "other handoff", columns, handoffKeys);
        }
      } finally {
        // Even on a stop or an error, because rows may already be masked.
        await restoreEntries(run);
      }
    },
  };
}

/** Marks the runs of compaction, so that its statements are distinguishable from those of other jobs. */
const PREFIX = "compact ";
const runOf = (run: string, { chunk }: CleanupShare): string => `${PREFIX}${run} ${chunk}`;

const partitionId = (id: string): string => {
  if (!/^[\w-]+$/.test(id)) throw new TypeError("not the id of a partition");
  return id;
};
