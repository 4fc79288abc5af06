import type { ClickHouseClient } from "@clickhouse/client";
import type { Micros } from "@conversation-export/domain";
import { clusterNames } from "./cluster-names.ts";
import { type ConnectionOptions, connect, type WarehouseAccess } from "./connection.ts";
import { createDeletion } from "./deletion.ts";
import { createEveryServer } from "./every-server.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** Upload windows, all of one length. */
export type CleanupScope = {
  /** Where they start, µs. */
  readonly starts: readonly Micros[];
  readonly length: Micros;
};

/** Of the records that were written in the windows a share by the hash of their id. */
export type CleanupShare = CleanupScope & { readonly chunk: number; readonly chunks: number };

export type FoundKeys = {
  /** Entries of the update index that newer exports of these windows have superseded. */
  readonly supersededUpdates: number;
  /** Conversations and messages that stand under more than one date of creation. */
  readonly movedRecords: number;
  /** Their handoffs under other dates than that of the latest export. */
  readonly movedHandoffs: number;
  /** Partitions in which rows will be hidden. */
  readonly partitions: readonly { readonly table: string; readonly partition: string }[];
};

/**
 * Finds and removes rows that no reader needs. Keys are kept under the id of the run, which nobody else has, from `begin`
 * to `forget`; all of it may be done again. Nobody else may delete rows between `find` and the end of `remove`. Throws
 * `WarehouseError`.
 */
export type CleanupStore = {
  /** Notes which records were written in the windows, and forgets the keys of former runs. Gives how many. */
  begin(run: string, scope: CleanupScope, signal?: AbortSignal): Promise<number>;
  /** Collects the keys of a share; nothing that readers see changes. */
  find(run: string, share: CleanupShare, signal?: AbortSignal): Promise<FoundKeys>;
  /**
   * Puts handoffs under the date of the latest export (of each target the version decides, specification 2.1, handoffs
   * rule 5), then hides the rows that were collected, by key and version. Whatever has become live meanwhile has its entry
   * of the update index behind it.
   */
  remove(run: string, share: CleanupShare, found: FoundKeys, signal?: AbortSignal): Promise<void>;
  /** Forgets the keys of all runs, also of those that died. */
  forget(): Promise<void>;
  close(): Promise<void>;
};

const INSERT_KEYS =
  "INSERT INTO compaction_keys (run_id, kind, client_id, id, key_date, target, target_kind, version)";

type Parameters = Readonly<Record<string, unknown>>;

/** `url`: of the user for jobs. */
export function createCleanupStore(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): CleanupStore {
  const { topology } = deps;
  const connection: ConnectionOptions = {
    ...deps,
    maxOpenConnections: 2,
    requestTimeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      // A projection may show rows that are hidden in its table.
      optimize_use_projections: 0,
      output_format_json_quote_64bit_integers: 0,
      // All rows of a record lie on one shard.
      distributed_product_mode: "local",
      // Beyond this much memory the sorting and grouping of keys goes to disk.
      max_bytes_before_external_group_by: "1000000000",
      join_use_nulls: 0,
    },
  };
  const client: ClickHouseClient = connect(connection);
  const servers = createEveryServer({ ...connection, topology });
  const deletion = createDeletion(deps);
  const { local, target, system } = clusterNames(topology);
  const keysTable = local("compaction_keys");

  async function command(query: string, parameters: Parameters, signal?: AbortSignal): Promise<void> {
    try {
      signal?.throwIfAborted();
      await client.command({
        query,
        query_params: parameters,
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw toWarehouseError(error);
    }
  }

  async function rowsOf<T>(query: string, parameters: Parameters): Promise<T[]> {
    try {
      const result = await client.query({ query, query_params: parameters, format: "JSONEachRow" });
      return await result.json<T>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  /** Deletes the rows of `table` whose `columns` (four, the last is the version) stand among the keys of a kind. */
  function mask(run: string, table: string, kind: string, columns: string, keys: string) {
    return deletion.mask({
      table,
      condition: `(${columns}) IN (SELECT ${keys} FROM ${keysTable} WHERE run_id = {run:String} AND kind = {kind:String})`,
      parameters: { run, kind },
    });
  }

  // Partitions go at once, where a deletion would write parts anew.
  async function forget(): Promise<void> {
    const runs = await rowsOf<{ id: string }>(
      `SELECT DISTINCT partition_id AS id FROM ${system("parts")}
        WHERE active AND database = currentDatabase() AND table = {table:String}`,
      { table: keysTable },
    );
    for (const { id } of runs)
      await servers.command({
        query: `ALTER TABLE ${target("compaction_keys")} DROP PARTITION ID '${partitionId(id)}'`,
      });
  }

  /** Gives live records that have lost their entry of the update index their entry back. */
  async function restoreEntries(run: string): Promise<void> {
    const [row] = await rowsOf<{ n: number }>(`SELECT count() AS n FROM (${LIVE}) WHERE ${HAS_NO_ENTRY}`, {
      run,
    });
    if (row !== undefined && row.n > 0) await command(RESTORE_ENTRIES, { run });
  }

  return {
    forget,
    async begin(id, scope, signal) {
      const run = PREFIX + id;
      await forget();
      const parameters = { run, ...windowsOf(scope) };
      for (const statement of NOTING) await command(statement, parameters, signal);
      const [row] = await rowsOf<{ n: number }>(
        "SELECT count() AS n FROM compaction_keys WHERE run_id = {run:String}",
        { run },
      );
      return row?.n ?? 0;
    },
    async find(id, share, signal) {
      const { chunk, chunks } = share;
      const run = runOf(id, share);
      const parameters = { windows: PREFIX + id, run, ...windowsOf(share), chunk, chunks };
      for (const statement of FINDING) await command(statement, parameters, signal);
      const [doubles] = await rowsOf<{ n: number }>(
        "SELECT count() AS n FROM compaction_keys WHERE run_id = {run:String} AND kind != 'superseded'",
        { run },
      );
      // Their rows are looked for only when there are any, which is seldom.
      if (doubles !== undefined && doubles.n > 0)
        for (const statement of FINDING_OTHERS) await command(statement, parameters, signal);
      const [counts] = await rowsOf<Omit<FoundKeys, "partitions">>(
        `SELECT countIf(kind = 'superseded') AS supersededUpdates, countIf(kind = 'other handoff') AS movedHandoffs,
            uniqExactIf((client_id, kind, id), kind IN ('other conversation', 'other message')) AS movedRecords
          FROM compaction_keys WHERE run_id = {run:String}`,
        { run },
      );
      if (counts === undefined) throw new Error("an aggregation without a row");
      const partitions = await rowsOf<{ table: string; partition: string }>(
        `SELECT DISTINCT tables[kind] AS table, toString(toYYYYMM(key_date)) AS partition FROM (
            SELECT *, map('superseded', 'conversation_updates', 'other update', 'conversation_updates',
              'other conversation', 'conversations', 'other handoff', 'handoffs', 'other message', 'messages') AS tables
            FROM compaction_keys WHERE run_id = {run:String} AND mapContains(tables, kind))`,
        { run },
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
      // A statement that has begun goes on in ClickHouse: it is waited for also by who is to stop.
      const mayGoOn = (): void => signal?.throwIfAborted();
      try {
        mayGoOn();
        if (tables.has("conversation_updates"))
          await mask(run, "conversation_updates", "superseded", updates, keys);
        mayGoOn();
        if (found.movedHandoffs > 0) await command(MOVE_HANDOFFS, { run });
        // The handoffs last: a run that breaks off before finds the record again by them.
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
        // Also when it was told to stop: what it has removed is gone.
        await restoreEntries(run);
      }
    },
    close: async () => {
      await client.close();
      await servers.close();
      await deletion.close();
    },
  };
}

const windowsOf = ({ starts, length }: CleanupScope): Parameters => ({
  starts: starts.map((start) => Math.floor(start / 1_000_000)),
  seconds: length / 1_000_000,
  first: Math.min(...starts),
  end: Math.max(...starts) + length,
});

/** Tells the statements of compaction from those of other jobs. */
const PREFIX = "compact ";
const runOf = (run: string, { chunk }: CleanupShare): string => `${PREFIX}${run} ${chunk}`;

const partitionId = (id: string): string => {
  if (!/^[\w-]+$/.test(id)) throw new TypeError("not the id of a partition");
  return id;
};

const IN_WINDOWS = `uploaded_at >= fromUnixTimestamp64Micro({first:Int64}, 'UTC')
    AND uploaded_at < fromUnixTimestamp64Micro({end:Int64}, 'UTC')
    AND intDiv(toUnixTimestamp(uploaded_at), {seconds:UInt32}) * {seconds:UInt32} IN {starts:Array(UInt32)}`;

const inChunk = (id: string): string => `cityHash64(client_id, ${id}) % {chunks:UInt32} = {chunk:UInt32}`;

/** Keys of this run. */
const keysOfRun = (kind: string, columns: string): string =>
  `(SELECT ${columns} FROM compaction_keys WHERE run_id = {run:String} AND kind = '${kind}')`;

const noteWritten = (kind: string, table: string, id: string): string =>
  `INSERT INTO compaction_keys (run_id, kind, client_id, id)
    SELECT DISTINCT {run:String}, 'written ${kind}', client_id, ${id} FROM ${table} WHERE ${IN_WINDOWS}`;

const NOTING: readonly string[] = [
  noteWritten("conversation", "conversations", "conversation_id"),
  noteWritten("message", "messages", "message_id"),
];

/** Records of the share that were written in the windows. */
const isWritten = (kind: string, id: string): string =>
  `(client_id, ${id}) IN (SELECT client_id, id FROM compaction_keys
    WHERE run_id = {windows:String} AND kind = 'written ${kind}' AND ${inChunk("id")})`;

/**
 * An entry is superseded when a later export of its record was written in a closed window: that one has been readable
 * for long, so that no query which is just opening its tables still needs the entry. The live entry must be there.
 */
const SUPERSEDED_UPDATES = `INSERT INTO compaction_keys (run_id, kind, client_id, id, key_date, record_date, version)
  SELECT {run:String}, 'superseded', client_id, conversation_id, entry.1, date_created, entry.2
  FROM (
    SELECT u.client_id AS client_id, u.date_created AS date_created, u.conversation_id AS conversation_id,
      groupUniqArrayIf((u.date_updated, u.version), u.version < l.latest) AS entries
    FROM (SELECT client_id, date_updated, date_created, conversation_id, version FROM conversation_updates
      WHERE ${isWritten("conversation", "conversation_id")}) AS u
    INNER JOIN (SELECT client_id, date_created, conversation_id, max(version) AS latest FROM conversations
      WHERE ${IN_WINDOWS} AND ${inChunk("conversation_id")}
      GROUP BY client_id, date_created, conversation_id) AS l
    ON u.client_id = l.client_id AND u.date_created = l.date_created AND u.conversation_id = l.conversation_id
    GROUP BY u.client_id, u.date_created, u.conversation_id
    HAVING countIf(u.version = l.latest) > 0 AND notEmpty(entries))
  ARRAY JOIN entries AS entry`;

/**
 * Records that stand under several dates; the key of the latest export stays, of equal versions that of the later
 * upload. A row for the date that stays, and one for each other date.
 */
const doubleKeys = (
  kind: string,
  table: string,
  id: string,
  more: string,
): string => `INSERT INTO compaction_keys
    (run_id, kind, client_id, id, key_date, record_date, version)
  SELECT {run:String}, if(date = stays, '${kind}', '${kind} date'), client_id, id, date, stays, if(date = stays, latest, 0)
  FROM (
    SELECT client_id, id, argMaxIf(date_created, (version, uploaded_at), is_record) AS stays,
      toUInt256(maxIf(version, is_record)) AS latest, groupUniqArray(date_created) AS dates
    FROM (
      SELECT client_id, ${id} AS id, date_created, version, uploaded_at, true AS is_record
      FROM ${table} WHERE ${isWritten(kind, id)}
      ${more})
    GROUP BY client_id, id
    HAVING length(dates) > 1 AND countIf(is_record) > 0
      AND argMaxIf(uploaded_at, (version, uploaded_at), is_record) < fromUnixTimestamp64Micro({end:Int64}, 'UTC'))
  ARRAY JOIN dates AS date`;

// Handoffs of a run that broke off may be all that is left under another date. Those of a later export than the latest
// record belong to a batch on its way.
const HANDOFF_DATES = `UNION ALL
      SELECT client_id, conversation_id AS id, conversation_date_created AS date_created, toUInt128(version) AS version,
        uploaded_at, false AS is_record
      FROM handoffs WHERE ${isWritten("conversation", "conversation_id")}`;

/** The rows of these records under other dates. */
const otherRows = (
  kind: string,
  record: string,
  table: string,
  names: {
    readonly id: string;
    /** Of the creation of the record. */
    readonly created: string;
    readonly key?: string;
    readonly more?: string;
  },
): string => {
  const { id, created, key = created, more = "'', 0" } = names;
  const isOther =
    key === created
      ? `(client_id, ${key}, ${id}) IN ${keysOfRun(`${record} date`, "client_id, key_date, id")}`
      : `(client_id, ${id}) IN ${keysOfRun(record, "client_id, id")}`;
  return `${INSERT_KEYS}
  SELECT DISTINCT {run:String}, '${kind}', r.client_id, r.${id}, r.${key}, ${more}, r.version
  FROM (SELECT * FROM ${table} WHERE ${isOther}) AS r
  INNER JOIN ${keysOfRun(record, "client_id, id, record_date, toUInt128(version) AS latest")} AS w
    ON r.client_id = w.client_id AND r.${id} = w.id
  WHERE r.${created} != w.record_date AND toUInt128(r.version) <= w.latest`;
};

const FINDING: readonly string[] = [
  doubleKeys("conversation", "conversations", "conversation_id", HANDOFF_DATES),
  doubleKeys("message", "messages", "message_id", ""),
  SUPERSEDED_UPDATES,
];

const FINDING_OTHERS: readonly string[] = [
  otherRows("other conversation", "conversation", "conversations", {
    id: "conversation_id",
    created: "date_created",
  }),
  otherRows("other update", "conversation", "conversation_updates", {
    id: "conversation_id",
    created: "date_created",
    key: "date_updated",
  }),
  otherRows("other handoff", "conversation", "handoffs", {
    id: "conversation_id",
    created: "conversation_date_created",
    more: "r.target, toUInt8(r.target_kind)",
  }),
  otherRows("other message", "message", "messages", { id: "message_id", created: "date_created" }),
];

const IS_NOT_ERASED = `(client_id, conversation_id) NOT IN
        (SELECT client_id, value FROM suppressions WHERE kind = 'conversation')`;

// What stands under the right date in this version or a later one stays as it is. The rows keep their instant of
// upload, for they are no later export. What is being erased is not written again. Of equal versions FINAL gives the one
// that was inserted last, as readers see it.
const MOVE_HANDOFFS = `INSERT INTO handoffs (client_id, conversation_date_created, conversation_id, target, target_kind,
    version, uploaded_at, date_created, name, outcome_status, reason_code, entry)
  SELECT h.client_id, w.record_date, h.conversation_id, h.target, h.target_kind,
    h.version, h.uploaded_at, h.date_created, h.name, h.outcome_status, h.reason_code, h.entry
  FROM (SELECT * FROM handoffs FINAL
    WHERE (client_id, conversation_date_created, conversation_id, target, toUInt8(target_kind), version)
        IN ${keysOfRun("other handoff", "client_id, key_date, id, target, target_kind, version")}
      AND ${IS_NOT_ERASED}
    ORDER BY version DESC, uploaded_at DESC LIMIT 1 BY client_id, conversation_id, target, target_kind) AS h
  INNER JOIN ${keysOfRun("conversation", "client_id, id, record_date")} AS w
    ON h.client_id = w.client_id AND h.conversation_id = w.id
  LEFT JOIN (SELECT client_id, conversation_date_created, conversation_id, target, target_kind, max(version) AS version
    FROM handoffs WHERE (client_id, conversation_date_created, conversation_id)
        IN ${keysOfRun("conversation", "client_id, record_date, id")}
    GROUP BY client_id, conversation_date_created, conversation_id, target, target_kind) AS e
    ON e.client_id = w.client_id AND e.conversation_date_created = w.record_date
      AND e.conversation_id = w.id AND e.target = h.target AND e.target_kind = h.target_kind
  WHERE e.version < h.version`;

const liveOf = (columns: string): string => `SELECT ${columns} FROM conversations FINAL
    WHERE (client_id, date_created, conversation_id) IN
      (SELECT client_id, record_date, id FROM compaction_keys
        WHERE run_id = {run:String} AND kind IN ('superseded', 'conversation')) AND ${IS_NOT_ERASED}`;
const LIVE = liveOf("client_id, date_updated, conversation_id, version");
const HAS_NO_ENTRY = `(client_id, date_updated, conversation_id, version) NOT IN
    (SELECT client_id, date_updated, conversation_id, version FROM conversation_updates
      WHERE (client_id, date_updated, conversation_id) IN (${liveOf("client_id, date_updated, conversation_id")}))`;
const ENTRY_COLUMNS =
  "client_id, date_updated, conversation_id, version, date_created, uploaded_at, head, tail";
const RESTORE_ENTRIES = `INSERT INTO conversation_updates (${ENTRY_COLUMNS})
  SELECT ${ENTRY_COLUMNS} FROM (${liveOf(ENTRY_COLUMNS)}) WHERE ${HAS_NO_ENTRY}`;
