import { DATED_KINDS, type Micros, UNDATED_KINDS } from "@conversation-export/domain";
import { randomUUID } from "node:crypto";
import { ServiceError } from "@conversation-export/runtime";
import { noteDeleted, type RunUpload } from "../changes/deletion-entries.ts";
import { CHANGES } from "../tables/changes.ts";
import { piecesOf } from "../session/pieces.ts";
import { readServerTime } from "../session/server-time.ts";
import type { Session } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { createDeletion, WITH_HIDDEN } from "./deletion.ts";
import { all, countOf, OF_RETENTION, OF_RUN, parametersOf, RUN } from "./erasure/erasure-keys.ts";
import { forErasures } from "./erasure/erasure-store.ts";
import { createErasureEnd } from "./erasure/forget.ts";
import { createKeyedDeletion } from "./erasure/keyed-deletion.ts";
import { countUndated, DATES_BEFORE, expiredOf, expiredUndated } from "./expired-records.ts";
import {
  isExpired,
  kindsOf,
  RETENTION_TABLES,
  type RetentionTable,
  STALE_TABLES,
  type Which,
} from "./expired-rows.ts";
import { keysLost } from "./job-keys.ts";

export type Cutoff = { readonly clientId: string; readonly before: Micros };

/** Conversations and messages expire by their live date of creation, end users by their latest update. */
export type Expired = {
  /** Stored rows, superseded and masked ones too. @throws ServiceError `keys_lost` (retryable) */
  count(table: RetentionTable): Promise<{ clientId: string; rows: number }[]>;
  /** `dropped`: in whole parts. Publishes deletions before it removes entries of changes. */
  erase(table: RetentionTable): Promise<{ dropped: number }>;
  /** Publishes what a failed or stopped run has not, and removes the keys. */
  end(signal: AbortSignal): Promise<void>;
};

/** Clients travel in the URL: ClickHouse takes 131,072 characters for a parameter. */
const MAX_CHARACTERS = 100_000;
/** With its comma. */
const CUTOFF_CHARACTERS = 20;

/** As many clients as one `expired` takes. */
export const groupsOfCutoffs = <T extends Pick<Cutoff, "clientId">>(cutoffs: readonly T[]): T[][] =>
  piecesOf(cutoffs, {
    room: MAX_CHARACTERS,
    sizeOf: ({ clientId }) => {
      const escaped = clientId.replace(/[\\'\t\n\r]/g, "\\$&");
      return Math.max(CUTOFF_CHARACTERS, new URLSearchParams([[`'${escaped}',`, ""]]).toString().length);
    },
  });

/** @throws WarehouseError from every method */
export type RetentionStore = {
  /** ClickHouse's clock, ms. */
  serverTime(): Promise<number>;
  /** Also what a failed run has left. `cutoffs`: by `groupsOfCutoffs`. `signal`: stops all but `end`. */
  expired(cutoffs: readonly Cutoff[], signal?: AbortSignal): Promise<Expired>;
};

/** Longer than ingest keeps a batch in flight with the same stamp. */
const ON_THE_WAY = "INTERVAL 10 MINUTE";
/** A deletion rewrites the parts that it touches, and holds its keys in memory. */
const KEYS_AT_ONCE = 2_000_000;
const MAX_ROUNDS = 10;

export const createRetentionStore = (deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
  readonly keysAtOnce?: number;
}): RetentionStore => {
  const { runUpload, keysAtOnce = KEYS_AT_ONCE } = deps;
  const session = forErasures(deps.session);
  const { cluster } = session.names;
  const deletion = createDeletion(deps);
  const keyed = createKeyedDeletion({ session, deletion });
  const { forget } = createErasureEnd({ session, deletion });

  /** A distributed table has no `_row_exists`. */
  const rowsOf = (table: string): string =>
    cluster === null ? table : `clusterAllReplicas('${cluster}', currentDatabase(), '${table}_local')`;

  const isGone = (error: unknown): boolean =>
    error instanceof WarehouseError && error.causeName === "NO_SUCH_DATA_PART";

  return {
    serverTime: () => readServerTime(session),
    expired: async (cutoffs, signal = new AbortController().signal) => {
      const run = { id: `retention-${randomUUID()}`, erases: true };
      const request = `${OF_RETENTION}${run.id}`;
      const clients = cutoffs.map(({ clientId }) => clientId);
      const [clock] = await session.rows<{ settled: string }>(
        "retention.settled",
        `SELECT toString(toUnixTimestamp64Micro(now64(6) - ${ON_THE_WAY})) AS settled`,
        { signal },
      );
      const parameters = {
        ...parametersOf(run),
        ...clock,
        request,
        clients,
        cutoffs: cutoffs.map(({ before }) => before),
        latest: Math.max(0, ...cutoffs.map(({ before }) => before)),
      };
      type Parameters = Readonly<Record<string, unknown>>;
      const select = <Row>(query: string, given: Parameters): Promise<Row[]> =>
        session.rows("retention.count", query, { parameters: given, settings: WITH_HIDDEN, signal });
      const note = (statement: string, given: Parameters): Promise<void> =>
        session.command("retention.note", statement, { parameters: given, settings: WITH_HIDDEN, signal });
      const inShares = (keys: number): readonly Parameters[] => {
        const shares = Math.ceil(keys / keysAtOnce);
        return Array.from({ length: shares }, (_, share) => ({ ...parameters, shares, share }));
      };
      const countKeys = async (phase: string): Promise<ReadonlyMap<string, number>> => {
        const query = `SELECT toString(kind) AS kind, toString(count()) AS rows FROM erasure_keys
          WHERE phase = '${phase}' AND kind != 'run' AND ${RUN} GROUP BY kind`;
        const counts = await select<{ kind: string; rows: string }>(query, parameters);
        return new Map(counts.map(({ kind, rows }) => [kind, Number(rows)]));
      };

      const assertKept = async (): Promise<void> => {
        const query = `SELECT toString(uniqExact(client_id)) AS rows FROM ${OF_RUN}`;
        if (countOf(await select(query, parameters)) === new Set(clients).size) return;
        throw keysLost();
      };

      const removeKeys = (): Promise<void> => forget(run, new AbortController().signal);

      const collect = async (): Promise<void> => {
        const key = { phase: "found", kind: "run", id: run.id, request_id: request };
        const marks = clients.map((client) => ({ ...key, client_id: client }));
        await session.insert("retention.begin", { table: "erasure_keys", rows: marks }, { signal });
        const each = cutoffs.map(({ clientId: client, before }) => ({
          ...parameters,
          client,
          clients: [client],
          cutoffs: [before],
        }));
        for (const { statement, ofClient } of DATES_BEFORE)
          await all(ofClient ? each : [parameters], (given) => note(statement, given));
        const found = await countKeys("found");
        for (const kind of DATED_KINDS)
          for (const share of inShares(found.get(`${kind} record`) ?? 0))
            for (const statement of expiredOf(kind, rowsOf)) await note(statement, share);
        for (const kind of UNDATED_KINDS)
          for (const share of inShares(countOf(await select(countUndated(kind, rowsOf), parameters))))
            await note(expiredUndated(kind, rowsOf), share);
      };
      const keys = await collect()
        .then(() => countKeys("deleting"))
        .catch(async (error: unknown) => {
          // What is left goes after a day.
          await removeKeys().catch(() => undefined);
          throw error;
        });
      const sharesOf = (table: RetentionTable, which: Which): readonly Parameters[] =>
        inShares(kindsOf(table, which).reduce((sum, kind) => sum + (keys.get(kind) ?? 0), 0));
      let stale = [...keys.keys()].some((kind) => kind.endsWith(" stale"));
      let isPublished = true;

      const countBy = async (
        column: "client_id" | "_part",
        table: RetentionTable,
        which: Which,
      ): Promise<ReadonlyMap<string, number>> => {
        const counts = new Map<string, number>();
        const query = `SELECT ${column} AS name, toString(count()) AS rows FROM ${table}
          WHERE ${isExpired(table, which, "GLOBAL IN")} GROUP BY name ORDER BY name`;
        for (const share of sharesOf(table, which))
          for (const { name, rows } of await select<{ name: string; rows: string }>(query, share))
            counts.set(name, (counts.get(name) ?? 0) + Number(rows));
        await assertKept();
        return counts;
      };

      /** Parts are immutable, so no row that arrives meanwhile is lost. */
      const dropParts = async (
        table: RetentionTable,
        rowsOfParts: ReadonlyMap<string, number>,
      ): Promise<number> => {
        const parts = await session.rows<{ name: string; size: string }>(
          "retention.parts",
          `SELECT name, toString(rows) AS size FROM system.parts
            WHERE database = currentDatabase() AND table = {table:String} AND active`,
          { parameters: { run: run.id, table }, signal },
        );
        let dropped = 0;
        for (const { name, size } of parts.filter((one) => rowsOfParts.get(one.name) === Number(one.size))) {
          signal.throwIfAborted();
          try {
            const query = `ALTER TABLE ${table} DROP PART {name:String}`;
            await session.command("retention.drop_part", query, { parameters: { name }, signal });
            dropped += Number(size);
          } catch (error) {
            // Merged meanwhile: its rows are removed from the new part.
            if (!isGone(error)) throw error;
          }
        }
        return dropped;
      };

      const eraseRows = async (table: RetentionTable, which: Which): Promise<number> => {
        const condition = (isIn: "IN" | "GLOBAL IN"): string => isExpired(table, which, isIn);
        let dropped = 0;
        for (let round = 0; round < MAX_ROUNDS; round += 1) {
          const found = await countBy("_part", table, which);
          const rows = [...found.values()].reduce((sum, one) => sum + one, 0);
          if (rows === 0) return dropped;
          // Not on a cluster: the servers use the same names for different parts.
          const gone = cluster === null ? await dropParts(table, found) : 0;
          dropped += gone;
          if (gone < rows)
            for (const share of sharesOf(table, which))
              await keyed.erase({ table, condition, parameters: share }, signal);
          await keyed.onAllReplicas([table], signal);
        }
        throw new ServiceError("erasure_incomplete", "expired rows come back while they are deleted", {
          retryable: true,
        });
      };
      const publishChanges = async (publishSignal: AbortSignal): Promise<void> => {
        // Also what a run that died is deleting.
        for (const table of RETENTION_TABLES) await keyed.settled(table, publishSignal);
        await keyed.onAllReplicas(RETENTION_TABLES, publishSignal);
        const source = `SELECT client_id, kind, id, date_created FROM ${CHANGES}
          WHERE ${isExpired(CHANGES, "published", "GLOBAL IN")}`;
        for (const share of sharesOf(CHANGES, "published"))
          await noteDeleted(
            { session, runUpload },
            { name: "retention.publish", source, parameters: share, signal: publishSignal },
          );
      };
      return {
        count: async (table) => {
          const which = table === CHANGES ? "published" : "expired";
          const counts = await countBy("client_id", table, which);
          return [...counts].map(([clientId, rows]) => ({ clientId, rows }));
        },
        erase: async (table) => {
          isPublished = table === CHANGES && isPublished;
          if (stale) for (const one of STALE_TABLES) await eraseRows(one, "stale");
          stale = false;
          if (table === CHANGES) {
            await publishChanges(signal);
            await assertKept();
            isPublished = true;
          }
          return { dropped: await eraseRows(table, "expired") };
        },
        end: async (endSignal) => {
          try {
            // A later run may skip these clients: their retention may be off or longer by then.
            if (!isPublished) await publishChanges(endSignal);
          } finally {
            await removeKeys();
          }
        },
      };
    },
  };
};
