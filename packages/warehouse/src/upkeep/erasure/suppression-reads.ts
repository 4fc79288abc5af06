import { createHash } from "node:crypto";
import {
  type Micros,
  PERSON_KINDS,
  type SuppressionKey,
  type SuppressionReads,
  type TakeHash,
} from "@conversation-export/domain";
import { piecesOf } from "../../session/pieces.ts";
import type { Session } from "../../session/session.ts";
import { brokenMidway, toWarehouseError } from "../../session/warehouse-error.ts";
import { all } from "./erasure-keys.ts";

const HASH = "SHA256(concat(toString(kind), char(0), client_id, char(0), value))";
/** Rounded up. */
const SECONDS = "toUInt32(intDiv(version + 999999, 1000000))";
const SINCE = "kind != 'secret' AND added_at >= fromUnixTimestamp64Milli({since:Int64})";
const ROW_BYTES = 12;
/** Values travel in the query's URL. */
const MAX_VALUES = 100;
/** UTF-8, up to six characters each in the URL: ClickHouse takes 131,072 for a parameter. */
const MAX_BYTES = 10_000;
/** Ends an answer that broke off. */
const EXCEPTION = "__exception__\r\n";

const hexOf = (text: string): string => createHash("sha256").update(text).digest("hex");
const hashOf = ({ kind, clientId, value }: SuppressionKey): string =>
  hexOf(`${kind}\0${clientId}\0${value}`).slice(0, 16);

/** Returns the rest; false: `take` wants no more. */
const takeRows = (bytes: Buffer, take: TakeHash): Buffer | false => {
  let at = 0;
  for (; at + ROW_BYTES <= bytes.length; at += ROW_BYTES) {
    if (!take(bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8))) return false;
  }
  return bytes.subarray(at);
};

const takeAnswer = async (answer: AsyncIterable<Buffer>, take: TakeHash): Promise<boolean> => {
  let rest: Buffer = Buffer.alloc(0);
  let end = "";
  for await (const chunk of answer) {
    end = `${end}${chunk.toString("latin1", Math.max(0, chunk.length - EXCEPTION.length))}`.slice(
      -EXCEPTION.length,
    );
    const left = takeRows(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]), take);
    if (left === false) return false;
    rest = left;
  }
  if (rest.length === 0 && end !== EXCEPTION) return true;
  throw brokenMidway();
};

const inPieces = <T>(items: readonly T[], valueOf: (item: T) => string): T[][] =>
  piecesOf(items, {
    most: MAX_VALUES,
    room: MAX_BYTES,
    sizeOf: (item) => Buffer.byteLength(valueOf(item)),
  });

const groupsOf = (keys: readonly SuppressionKey[]): SuppressionKey[][] => {
  const groups = Map.groupBy(keys, ({ kind, clientId }) => `${kind}\0${clientId}`);
  return [...groups.values()].flatMap((group) => inPieces(group, ({ value }) => value));
};

/** No query contains a person's id. */
const IS_HASHED: ReadonlySet<string> = new Set(PERSON_KINDS.map(({ kind }) => kind));
const valueOf = ({ kind, value }: SuppressionKey): string => (IS_HASHED.has(kind) ? hexOf(value) : value);
const valueSql = (kind: SuppressionKey["kind"]): string =>
  IS_HASHED.has(kind) ? "lower(hex(SHA256(value)))" : "value";

/** @throws WarehouseError from every method */
export const createSuppressionReads = (session: Session): SuppressionReads => {
  const hashesOf = async (take: TakeHash, since: number | null, clients: string[]): Promise<boolean> => {
    const answer = await session.stream(
      "suppressions.hashes",
      `SELECT reinterpretAsUInt32(reverse(substring(hash, 1, 4))), reinterpretAsUInt32(reverse(substring(hash, 5, 4))),
          seconds
        FROM (SELECT ${HASH} AS hash, ${SECONDS} AS seconds FROM suppressions
          WHERE ${SINCE} AND client_id IN {clients:Array(String)})
        FORMAT RowBinary`,
      // As long as the reader takes.
      { parameters: { since: Math.floor(since ?? 0), clients }, settings: { max_execution_time: 0 } },
    );
    try {
      return await takeAnswer(answer, take);
    } catch (error) {
      throw toWarehouseError(error);
    } finally {
      answer.destroy();
    }
  };

  return {
    clients: async (since) => {
      const rows = await session.rows<{ client_id: string; rows: string; latest: string }>(
        "suppressions.clients",
        `SELECT client_id, toString(count()) AS rows, toString(max(version)) AS latest FROM suppressions
          WHERE ${SINCE} GROUP BY client_id`,
        { parameters: { since: Math.floor(since ?? 0) } },
      );
      return rows.map((row) => ({
        clientId: row.client_id,
        rows: Number(row.rows),
        latest: Number(row.latest),
      }));
    },
    hashes: async (take, { since, clients }) => {
      for (const piece of inPieces(clients, (clientId) => clientId))
        if (!(await hashesOf(take, since, piece))) return false;
      return true;
    },
    lookUp: async (keys) => {
      const found = new Map<SuppressionKey, Micros>();
      await all(groupsOf(keys), async (group) => {
        const [{ clientId, kind }] = group as [SuppressionKey];
        const value = valueSql(kind);
        const rows = await session.rows<{ name: string; version: string }>(
          "suppressions.look_up",
          `SELECT ${value} AS name, toString(max(version)) AS version FROM suppressions
            WHERE client_id = {client:String} AND kind = '${kind}' AND ${value} IN {values:Array(String)}
            GROUP BY name`,
          { parameters: { client: clientId, values: group.map(valueOf) } },
        );
        const byName = new Map(rows.map(({ name, version }) => [name, Number(version)]));
        for (const key of group) found.set(key, byName.get(valueOf(key)) ?? 0);
      });
      return keys.map((key) => found.get(key) ?? 0);
    },
    secondsByHash: async (keys) => {
      const hashes = keys.map(hashOf);
      const rows = await all(
        inPieces(hashes, (hash) => hash),
        (piece) =>
          session.rows<{ hash: string; seconds: string }>(
            "suppressions.by_hash",
            `SELECT lower(hex(substring(${HASH}, 1, 8))) AS hash, toString(max(${SECONDS})) AS seconds FROM suppressions
            WHERE kind != 'secret' AND hash IN {piece:Array(String)} GROUP BY hash`,
            { parameters: { piece } },
          ),
      );
      const byHash = new Map(rows.flat().map(({ hash, seconds }) => [hash, Number(seconds)]));
      return hashes.map((hash) => byHash.get(hash) ?? 0);
    },
  };
};
