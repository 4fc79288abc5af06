import { hash, randomUUID } from "node:crypto";
import {
  type EventType,
  formatTimestampZ,
  type Micros,
  OWN_TABLE_OF,
  versionNumber,
} from "@conversation-export/domain";
import type { Version } from "@conversation-export/domain";
import type { Session, StatementName } from "../../session/session.ts";
import { createJobKeys } from "../job-keys.ts";

/** An export of a record on the bus. */
export type CarriedExport = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  readonly version: Version;
};

/**
 * Progress of the comparison: the next offset of each partition, and the end of the last compared hour, ms.
 */
export type ReconciledUntil = {
  readonly until: number;
  readonly offsets: readonly { topic: string; partition: number; offset: number }[];
};

/** @throws WarehouseError from every method */
export type ReconcileStore = {
  /**
   * Tells for each export whether its record is readable in this version or a later one, under any date of
   * creation. For up to about ten thousand exports at a time.
   */
  readable(type: EventType, exports: readonly CarriedExport[], signal?: AbortSignal): Promise<boolean[]>;
  /**
   * Tells for each export of an erased record whether the record is still readable in any version. Only rows
   * under the export's own date of creation count: under a later date, the id belongs to a record that may be
   * kept. Stores only hashes of the ids for the query.
   */
  standing(type: EventType, exports: readonly CarriedExport[], signal?: AbortSignal): Promise<boolean[]>;
  /** Removes the keys of runs whose process died. */
  forgetLeft(): Promise<void>;
  /** null: nothing has been compared yet. */
  loadUntil(): Promise<ReconciledUntil | null>;
  saveUntil(until: ReconciledUntil): Promise<void>;
};

/** Marks the runs of this store in `job_keys`. */
const PREFIX = "reconcile-";

const hashOf = (id: string): string => hash("sha256", id, "hex");

const nameOf = ({ clientId, id }: Pick<CarriedExport, "clientId" | "id">): string =>
  JSON.stringify([clientId, id]);

type Found = { client: string; id: string; version: string };

/** @param deps.now milliseconds since the epoch */
export const createReconcileStore = (deps: {
  readonly session: Session;
  readonly now: () => number;
}): ReconcileStore => {
  const session = deps.session.with({
    timeoutMs: 600_000,
    // A projection would still show rows that are masked in its table.
    settings: { optimize_use_projections: 0 },
  });
  const jobKeys = createJobKeys({ session });

  type Key = { readonly clientId: string; readonly id: string; readonly dateCreated: Micros };

  /** Runs a query while `keys` are in job_keys under its parameter `run`. */
  const ask = async <Row>(
    name: StatementName,
    keys: readonly Key[],
    query: string,
    signal: AbortSignal | undefined,
  ): Promise<Row[]> => {
    const run = `${PREFIX}${randomUUID()}`;
    const rows = keys.map((one) => ({
      run_id: run,
      kind: "carried",
      client_id: one.clientId,
      id: one.id,
      date_created: formatTimestampZ(one.dateCreated),
    }));
    try {
      const into = { table: "job_keys", rows };
      await session.insert("reconcile.note", into, { settings: { async_insert: 0 }, signal });
      return await session.rows<Row>(name, query, { parameters: { run }, signal });
    } finally {
      await jobKeys.forget(run);
    }
  };

  /** The latest version of each record by `nameOf`, under its own date of creation or under any. */
  const latest = async (
    type: EventType,
    exports: readonly CarriedExport[],
    anyDate: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Map<string, bigint>> => {
    const { name: table, id, keyDate } = OWN_TABLE_OF[type];
    const keys = new Map(exports.map((one) => [`${nameOf(one)}${one.dateCreated}`, one]));
    const columns = keyDate !== null && !anyDate ? ["client_id", "date_created", id] : ["client_id", id];
    const wanted = columns.map((column) => (column === id ? "id" : column));
    // ClickHouse skips masked rows; of the others readers see the largest version.
    const rows = await ask<Found>(
      "reconcile.latest",
      [...keys.values()],
      `SELECT client_id AS client, ${id} AS id, toString(max(version)) AS version FROM ${table}
        WHERE (${columns.join(", ")}) GLOBAL IN
          (SELECT ${wanted.join(", ")} FROM job_keys WHERE run_id = {run:String})
        GROUP BY client_id, ${id}`,
      signal,
    );
    return new Map(rows.map((row) => [nameOf({ clientId: row.client, id: row.id }), BigInt(row.version)]));
  };

  return {
    readable: async (type, exports, signal) => {
      if (exports.length === 0) return [];
      const isIn = (versions: ReadonlyMap<string, bigint>, one: CarriedExport): boolean =>
        (versions.get(nameOf(one)) ?? -1n) >= versionNumber(one.version);
      const here = await latest(type, exports, false, signal);
      const readable = exports.map((one) => isIn(here, one));
      const others = exports.filter((_, index) => readable[index] === false);
      if (others.length === 0 || OWN_TABLE_OF[type].keyDate === null) return readable;
      const anywhere = await latest(type, others, true, signal);
      return exports.map((one, index) => readable[index] === true || isIn(anywhere, one));
    },
    standing: async (type, exports, signal) => {
      if (exports.length === 0) return [];
      const { name: table, id } = OWN_TABLE_OF[type];
      const keys = exports.map((one) => ({ ...one, id: hashOf(one.id) }));
      const ofRun = "FROM job_keys WHERE run_id = {run:String}";
      const rows = await ask<{ client: string; hash: string; created: string }>(
        "reconcile.standing",
        keys,
        `SELECT DISTINCT client_id AS client, lower(hex(SHA256(${id}))) AS hash,
            toString(toUnixTimestamp64Micro(date_created)) AS created
          FROM ${table}
          WHERE (client_id, date_created) GLOBAL IN (SELECT client_id, date_created ${ofRun})
            AND (client_id, date_created, hash) GLOBAL IN (SELECT client_id, date_created, id ${ofRun})`,
        signal,
      );
      const found = new Set(rows.map((row) => JSON.stringify([row.client, row.hash, Number(row.created)])));
      return keys.map((one) => found.has(JSON.stringify([one.clientId, one.id, one.dateCreated])));
    },
    forgetLeft: () => jobKeys.forgetLeft(PREFIX),
    loadUntil: async () => {
      const rows = await session.rows<{
        topic: string;
        partition: number;
        offset: string;
        until_ms: string;
      }>(
        "reconcile.load",
        `SELECT topic, partition, toString(next_offset) AS offset,
            toString(toUnixTimestamp64Milli(until)) AS until_ms FROM reconciled FINAL`,
      );
      if (rows.length === 0) return null;
      return {
        until: Math.max(...rows.map((row) => Number(row.until_ms))),
        offsets: rows.map(({ topic, partition, offset }) => ({ topic, partition, offset: Number(offset) })),
      };
    },
    saveUntil: async ({ until, offsets }) => {
      if (offsets.length === 0) return;
      const rows = offsets.map(({ topic, partition, offset }) => ({
        topic,
        partition,
        version: deps.now(),
        next_offset: offset,
        until: new Date(until).toISOString(),
      }));
      await session.insert(
        "reconcile.save",
        { table: "reconciled", rows },
        { settings: { async_insert: 0 } },
      );
    },
  };
};
