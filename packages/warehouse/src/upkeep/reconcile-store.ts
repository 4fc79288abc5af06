import { hash } from "node:crypto";
import {
  type EventType,
  type HandoffEntry,
  handoffVersion,
  type Micros,
  OWN_TABLE_OF,
  RECORD_KINDS,
  type RecordTable,
  versionNumber,
} from "@conversation-export/domain";
import type { Version } from "@conversation-export/domain";
import { micros } from "../session/micros-sql.ts";
import { readServerTime } from "../session/server-time.ts";
import type { Session } from "../session/session.ts";
import { erasedNames } from "../pages/sql/erased-sql.ts";
import { CHANGES } from "../tables/changes.ts";
import { NO_PROJECTIONS } from "./deletion.ts";
import type { Alive } from "./job-keys.ts";
import { type Ask, CARRIED, createCarriedKeys, type CarriedKey, ofDates, ofRun } from "./carried-keys.ts";

export type CarriedExport = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  readonly version: Version;
  readonly handoffs?: readonly HandoffEntry[];
};

/** `until`: end of the last compared hour, ms; `offsets`: the next ones. */
export type ReconciledUntil = {
  readonly until: number;
  readonly offsets: readonly ComparedOffset[];
};

/** `topicId`: null if the brokers gave none. */
export type ComparedOffset = { topic: string; topicId: string | null; partition: number; offset: number };

export type Lacking = RecordTable | typeof CHANGES;

/** `deletedAt`: of the last; `dateCreated`: the earliest of all. */
type DeletedDates = { readonly deletedAt: Micros; readonly dateCreated: Micros };

/** @throws WarehouseError from every method */
export type ReconcileStore = {
  /** For up to ten thousand exports; null: all lists and the change feed have this version or a later one. */
  lacking(
    type: EventType,
    exports: readonly CarriedExport[],
    signal?: AbortSignal,
  ): Promise<(Lacking | null)[]>;
  /** Published deletions since `since` of records without a row, under any date; null: none. */
  deleted(
    type: EventType,
    exports: readonly CarriedExport[],
    since: Micros,
    signal?: AbortSignal,
  ): Promise<(DeletedDates | null)[]>;
  /** Under this date: under later ones a record may be kept. Stores only hashed ids. */
  present(type: EventType, exports: readonly CarriedExport[], signal?: AbortSignal): Promise<boolean[]>;
  sweep(alive: Alive): Promise<void>;
  /** ClickHouse's clock, ms. */
  serverTime(): Promise<number>;
  loadUntil(): Promise<ReconciledUntil | null>;
  saveUntil(until: ReconciledUntil): Promise<void>;
};

const PREFIX = "reconcile-";

const hashOf = (id: string): string => hash("sha256", id, "hex");

const nameOf = ({ clientId, id }: Pick<CarriedExport, "clientId" | "id">): string =>
  JSON.stringify([clientId, id]);

type Found = readonly [client: string, id: string, version: string];
type FoundLive = readonly [...Found, uploadedAt: string];
type FoundDeletion = readonly [client: string, id: string, deletedAt: string, dateCreated: string];
type FoundEntry = readonly [client: string, id: string, storedAt: string];
type FoundHandoff = readonly [client: string, id: string, target: string, kind: number, version: string];

const liveRows = (type: EventType): string => {
  const { name: table, id, keyDate } = OWN_TABLE_OF[type];
  const where =
    keyDate === null
      ? `(client_id, ${id}) GLOBAL IN ${ofRun(CARRIED, "client_id, id")}`
      : ofDates(keyDate, id);
  return `SELECT client_id, ${id} AS id, max(version) AS v, max((version, uploaded_at)).2 AS u FROM ${table}
    WHERE ${where} GROUP BY client_id, id`;
};

const latestSql = (type: EventType): string =>
  `SELECT client_id, id, toString(v), toString(toUnixTimestamp64Micro(u)) FROM (${liveRows(type)})`;

/** `changes` has no order by id; `stored_at` is at most a second after `uploaded_at`. Deletions describe no row. */
const publishedSql = (
  type: EventType,
): string => `SELECT client_id, id, toString(toUnixTimestamp64Micro(max(stored_at)))
  FROM changes WHERE kind = '${OWN_TABLE_OF[type].kind}' AND NOT deleted
    AND (client_id, toDateTime(stored_at)) GLOBAL IN
      (SELECT client_id, arrayJoin([toDateTime(u), toDateTime(u) + 1]) FROM (${liveRows(type)}))
    AND (client_id, id) GLOBAL IN ${ofRun(CARRIED, "client_id, id")}
  GROUP BY client_id, id`;

const deletedSql = (type: EventType): string =>
  `SELECT client_id, id, toString(toUnixTimestamp64Micro(max(stored_at))), toString(toUnixTimestamp64Micro(min(date_created)))
    FROM changes WHERE client_id GLOBAL IN ${ofRun(CARRIED, "client_id")} AND kind = '${OWN_TABLE_OF[type].kind}'
      AND deleted AND stored_at >= ${micros("since")}
      AND (client_id, id) GLOBAL IN ${ofRun(CARRIED, "client_id, id")}
      AND (client_id, id) GLOBAL NOT IN (SELECT client_id, id FROM (${liveRows(type)}))
    GROUP BY client_id, id`;

/** Of equal versions the later upload is live. */
const INDEXED = `SELECT client_id, conversation_id, toString(version) FROM conversation_updates
  WHERE (client_id, date_updated, conversation_id, version) GLOBAL IN
    (SELECT client_id, argMax(date_updated, (version, uploaded_at)), conversation_id, max(version) FROM conversations
      WHERE ${ofDates("date_created", "conversation_id")} GROUP BY client_id, conversation_id)`;

const HANDOFFS = `SELECT client_id, conversation_id, target, toUInt8(target_kind), toString(max(version)) FROM handoffs
  WHERE ${ofDates("conversation_date_created", "conversation_id")}
  GROUP BY client_id, conversation_id, target, target_kind`;

const standingSql = (type: EventType): string => {
  const { name: table, id, kind } = OWN_TABLE_OF[type];
  const rows = `SELECT client_id, lower(hex(SHA256(${id}))) AS hash, date_created AS created, arrayJoin(${erasedNames(kind)}) AS name
    FROM ${table} WHERE (client_id, date_created) GLOBAL IN ${ofRun(CARRIED, "client_id, date_created")}
      AND (client_id, date_created, hash) GLOBAL IN ${ofRun(CARRIED, "client_id, date_created, id")}`;
  return `SELECT r.client_id, r.hash, toString(toUnixTimestamp64Micro(r.created)) FROM (${rows}) AS r
    GLOBAL LEFT JOIN (SELECT client_id, (toString(kind), id) AS name, max(created_before) AS before FROM erasure_keys
      WHERE phase = 'erased' AND (client_id, id) GLOBAL IN (SELECT client_id, tupleElement(name, 2) FROM (${rows}))
      GROUP BY client_id, name) AS h ON r.client_id = h.client_id AND r.name = h.name
    GROUP BY r.client_id, r.hash, r.created HAVING max(h.before) <= r.created`;
};

const versionsOf = (rows: readonly (Found | FoundLive)[]): ReadonlyMap<string, bigint> =>
  new Map(rows.map(([clientId, id, version]) => [nameOf({ clientId, id }), BigInt(version)]));

const instantsOf = (rows: readonly (FoundLive | FoundEntry)[]): ReadonlyMap<string, Micros> =>
  new Map(rows.map((row) => [nameOf({ clientId: row[0], id: row[1] }), Number(row.at(-1))]));

const targetOf = (one: Pick<CarriedExport, "clientId" | "id">, target: string, kind: number): string =>
  JSON.stringify([one.clientId, one.id, target, kind]);

/** `now`: ms since the epoch. */
export const createReconcileStore = (deps: {
  readonly session: Session;
  readonly now: () => number;
  readonly holder: string;
}): ReconcileStore => {
  const session = deps.session.with({ timeoutMs: 600_000, settings: NO_PROJECTIONS });
  const noted = createCarriedKeys({ session, prefix: PREFIX, holder: deps.holder });

  const keyOf = ({ clientId, id, dateCreated }: CarriedExport): CarriedKey => ({
    kind: CARRIED,
    clientId,
    id,
    date: dateCreated,
  });

  const readRelated = async (
    ask: Ask,
  ): Promise<{ indexed: ReadonlyMap<string, bigint>; attempts: ReadonlyMap<string, bigint> }> => {
    const indexed = versionsOf(await ask<Found>("reconcile.indexed", INDEXED));
    const rows = await ask<FoundHandoff>("reconcile.handoffs", HANDOFFS);
    const attempts = rows.map(
      ([clientId, id, target, kind, version]) =>
        [targetOf({ clientId, id }, target, kind), BigInt(version)] as const,
    );
    return { indexed, attempts: new Map(attempts) };
  };

  const lookUp = (
    type: EventType,
    exports: readonly CarriedExport[],
    signal: AbortSignal | undefined,
  ): Promise<(Lacking | null)[]> => {
    const keys = [...new Map(exports.map((one) => [nameOf(one), keyOf(one)])).values()];
    return noted.during(keys, { type, signal }, async (ask) => {
      const live = await ask<FoundLive>("reconcile.latest", latestSql(type));
      const latest = versionsOf(live);
      // After the rows: their entries were written before them.
      const entries = await ask<FoundEntry>("reconcile.published", publishedSql(type));
      const [storedAt, uploadedAt] = [instantsOf(entries), instantsOf(live)];
      const isPublished = (name: string): boolean => (storedAt.get(name) ?? 0) >= (uploadedAt.get(name) ?? 0);
      const related = type === RECORD_KINDS.conversation.type ? await readRelated(ask) : null;
      const lacks = (one: CarriedExport): Lacking | null => {
        const name = nameOf(one);
        const version = versionNumber(one.version);
        if ((latest.get(name) ?? -1n) < version) return OWN_TABLE_OF[type].name;
        if (related !== null && (related.indexed.get(name) ?? -1n) < version) return "conversation_updates";
        const hasAll = (one.handoffs ?? []).every((entry) => {
          const target = targetOf(one, entry.target, entry.targetKind === "handoff_id" ? 1 : 2);
          return (related?.attempts.get(target) ?? -1n) >= handoffVersion(entry, version);
        });
        if (!hasAll) return "handoffs";
        return isPublished(name) ? null : CHANGES;
      };
      return exports.map(lacks);
    });
  };

  return {
    lacking: async (type, exports, signal) => {
      if (exports.length === 0) return [];
      const first = await lookUp(type, exports, signal);
      const others = exports.filter((_, index) => first[index] !== null);
      if (others.length === 0) return first;
      // A record exported again between two queries looks incomplete: asked once more.
      const second = await lookUp(type, others, signal);
      let at = 0;
      return first.map((lack) => (lack === null ? null : (second[at++] ?? null)));
    },
    deleted: async (type, exports, since, signal) => {
      if (exports.length === 0) return [];
      const keys = [...new Map(exports.map((one) => [nameOf(one), keyOf(one)])).values()];
      const rows = await noted.during(keys, { type, signal }, (ask) =>
        ask<FoundDeletion>("reconcile.deleted", deletedSql(type), { since }),
      );
      const found = new Map(
        rows.map(([clientId, id, deletedAt, dateCreated]) => [
          nameOf({ clientId, id }),
          { deletedAt: Number(deletedAt), dateCreated: Number(dateCreated) },
        ]),
      );
      return exports.map((one) => found.get(nameOf(one)) ?? null);
    },
    present: async (type, exports, signal) => {
      if (exports.length === 0) return [];
      const keys = exports.map((one) => ({ ...one, id: hashOf(one.id) }));
      const query = standingSql(type);
      const rows = await noted.during(keys.map(keyOf), { type: null, signal }, (ask) =>
        ask<[client: string, hash: string, created: string]>("reconcile.present", query),
      );
      const found = new Set(
        rows.map(([client, ofId, created]) => JSON.stringify([client, ofId, Number(created)])),
      );
      return keys.map((one) => found.has(JSON.stringify([one.clientId, one.id, one.dateCreated])));
    },
    sweep: noted.sweep,
    serverTime: () => readServerTime(session),
    loadUntil: async () => {
      const rows = await session.rows<{
        topic: string;
        topic_id: string;
        partition: number;
        offset: string;
        until_ms: string;
      }>(
        "reconcile.load",
        `SELECT topic, topic_id, partition, toString(next_offset) AS offset,
            toString(toUnixTimestamp64Milli(until)) AS until_ms FROM reconciled FINAL`,
      );
      if (rows.length === 0) return null;
      return {
        until: Math.max(...rows.map((row) => Number(row.until_ms))),
        offsets: rows.map(({ topic, topic_id: id, partition, offset }) => ({
          topic,
          topicId: id === "" ? null : id,
          partition,
          offset: Number(offset),
        })),
      };
    },
    saveUntil: async ({ until, offsets }) => {
      if (offsets.length === 0) return;
      // Clocks that were ahead have saved higher ones.
      const [saved] = await session.rows<{ version: string }>(
        "reconcile.version",
        "SELECT toString(max(version)) AS version FROM reconciled",
      );
      const version = Math.max(deps.now(), Number(saved?.version ?? 0) + 1);
      const rows = offsets.map(({ topic, topicId, partition, offset }) => ({
        topic,
        topic_id: topicId ?? "",
        partition,
        version,
        next_offset: offset,
        until: new Date(until).toISOString(),
      }));
      await session.insert("reconcile.save", { table: "reconciled", rows });
    },
  };
};
