import type { Micros } from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import type { Session } from "../../session/session.ts";
import { recordNameSql } from "../../tables/record-dates.ts";
import { createDeletion } from "../deletion.ts";
import { deletionsUnderWay } from "../deletions-under-way.ts";
import { type Alive, createJobKeys, heldRun } from "../job-keys.ts";

export type CleanupScope = {
  readonly starts: readonly Micros[];
  readonly length: Micros;
};

export type CleanupShare = CleanupScope & { readonly chunk: number; readonly chunks: number };

/** For closed windows: no query that is opening its tables needs their entries. @throws WarehouseError */
export type SupersededEntries = {
  /** Rows of conversations. */
  countWritten(scope: CleanupScope, signal?: AbortSignal): Promise<number>;
  count(share: CleanupShare, signal?: AbortSignal): Promise<number>;
  /** Restores what became live; no other process may delete rows. @throws ServiceError `keys_lost` (retryable) */
  remove(run: string, share: CleanupShare, signal: AbortSignal): Promise<number>;
  /** Also by a process that is gone. */
  deletionRuns(): Promise<boolean>;
  /** No run of this process may be under way. */
  forgetDead(alive: Alive): Promise<void>;
  sweep(alive: Alive): Promise<void>;
};

const PREFIX = "compact-";

const IN_WINDOWS = `uploaded_at >= ${micros("first")}
    AND uploaded_at < ${micros("end")}
    AND intDiv(toUnixTimestamp(uploaded_at), {seconds:UInt32}) * {seconds:UInt32} IN {starts:Array(UInt32)}`;

const windowsOf = ({ starts, length }: CleanupScope): Readonly<Record<string, unknown>> => ({
  starts: starts.map((start) => Math.floor(start / 1_000_000)),
  seconds: length / 1_000_000,
  first: Math.min(...starts),
  end: Math.max(...starts) + length,
});

/** The joined side, a share, is held in memory. */
const SUPERSEDED = `SELECT u.client_id AS client_id, u.conversation_id AS id, u.date_updated AS date_updated,
    u.version AS version
  FROM conversation_updates AS u
  INNER JOIN (SELECT client_id, conversation_id, max(version) AS latest FROM conversations
    WHERE ${IN_WINDOWS} AND cityHash64(client_id, conversation_id) % {chunks:UInt32} = {chunk:UInt32}
    GROUP BY client_id, conversation_id) AS w
  ON u.client_id = w.client_id AND u.conversation_id = w.conversation_id
  WHERE u.version < w.latest`;

const keysOfRun = (columns: string, table = "job_keys"): string =>
  `(SELECT ${columns} FROM ${table} WHERE run_id = {run:String} AND kind = 'superseded')`;

const ENTRY_KEY = "client_id, date_updated, conversation_id, version";
const ENTRY = `${ENTRY_KEY}, date_created`;

/** Without those that are being erased. */
const LIVE = `SELECT c.* FROM (
    SELECT ${ENTRY} FROM conversations FINAL
    WHERE (client_id, date_created, conversation_id) IN (SELECT client_id, date_created, id FROM record_dates
      WHERE record IN ${keysOfRun(recordNameSql("client_id", "conversation", "id"))})
    ORDER BY version DESC, uploaded_at DESC LIMIT 1 BY client_id, conversation_id) AS c
  LEFT JOIN (SELECT client_id, value, max(created_before) AS created_before FROM suppressions
    WHERE kind = 'conversation' AND (client_id, value) IN ${keysOfRun("client_id, id")}
    GROUP BY client_id, value) AS s
  ON c.client_id = s.client_id AND c.conversation_id = s.value
  WHERE c.date_created >= s.created_before`;
const MISSING = `SELECT ${ENTRY} FROM (${LIVE}) WHERE (${ENTRY_KEY}) NOT IN
  (SELECT ${ENTRY_KEY} FROM conversation_updates
    WHERE (client_id, date_updated, conversation_id) IN (SELECT client_id, date_updated, conversation_id FROM (${LIVE})))`;

export const createSupersededEntries = (deps: {
  readonly session: Session;
  readonly holder: string;
}): SupersededEntries => {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      // All rows of a record lie on one shard.
      distributed_product_mode: "local",
      // Above it grouping spills to disk.
      max_bytes_before_external_group_by: "1000000000",
    },
  });
  const deletion = createDeletion(deps);
  const keys = createJobKeys({ session });
  const { local } = session.names;

  const countOf = async (
    name: "superseded.count" | "superseded.written" | "superseded.missing" | "superseded.noted",
    from: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<number> => {
    const [row] = await session.rows<{ n: number }>(name, `SELECT count() AS n FROM ${from}`, {
      parameters,
      signal,
    });
    return row?.n ?? 0;
  };

  const restoreMissing = async (run: string): Promise<void> => {
    if ((await countOf("superseded.missing", `(${MISSING})`, { run })) === 0) return;
    const restore = `INSERT INTO conversation_updates (${ENTRY}, uploaded_at) SELECT ${ENTRY}, now64(6) FROM (${MISSING})`;
    await session.command("superseded.restore", restore, { parameters: { run } });
  };

  return {
    countWritten: (scope, signal) =>
      countOf("superseded.written", `conversations WHERE ${IN_WINDOWS}`, windowsOf(scope), signal),
    count: ({ chunk, chunks, ...scope }, signal) =>
      countOf("superseded.count", `(${SUPERSEDED})`, { ...windowsOf(scope), chunk, chunks }, signal),
    remove: async (id, { chunk, chunks, ...scope }, signal) => {
      const run = heldRun(PREFIX, deps.holder, id);
      try {
        await keys.begin(run, signal);
        await session.command(
          "superseded.note",
          `INSERT INTO job_keys (run_id, kind, client_id, id, date_created, version)
            SELECT DISTINCT {run:String}, 'superseded', client_id, id, date_updated, version FROM (${SUPERSEDED})`,
          { parameters: { ...windowsOf(scope), chunk, chunks, run }, signal },
        );
        const noted = await countOf("superseded.noted", keysOfRun("*"), { run }, signal);
        if (noted > 0) {
          signal.throwIfAborted();
          try {
            // Not stopped midway: it would go on in ClickHouse.
            await deletion.mask({
              table: "conversation_updates",
              condition: `(${ENTRY_KEY}) IN ${keysOfRun("client_id, date_created, id, toUInt128(version)", local("job_keys"))}`,
              parameters: { run },
            });
          } finally {
            // Even on an error: rows may already be masked.
            await restoreMissing(run);
          }
        }
        await keys.assertKept(run);
        return noted;
      } finally {
        await keys.forget(run);
      }
    },
    deletionRuns: async () =>
      (await deletionsUnderWay(session, ["conversations", "conversation_updates"])).length > 0,
    forgetDead: (alive) => keys.forgetDead(PREFIX, deps.holder, alive),
    sweep: (alive) => keys.forgetDead(PREFIX, null, alive),
  };
};
