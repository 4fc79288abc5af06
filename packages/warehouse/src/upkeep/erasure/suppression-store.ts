import { formatTimestampZ, type Suppression, type SuppressionReads } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { createSuppressionReads } from "./suppression-reads.ts";

/** @throws WarehouseError from every method */
export type SuppressionStore = SuppressionReads & {
  /** Resolves when ClickHouse has acknowledged the rows. */
  add(suppressions: readonly (Suppression & { readonly requestId: string })[]): Promise<void>;
  /** The next erasure looks at them. */
  addFound(suppressions: readonly Suppression[]): Promise<void>;
  /** The hash stored first; if it differs, hashes of subjects cannot be compared. */
  claimSecret(hash: string): Promise<string>;
  /** ClickHouse's clock, ms since the epoch. */
  serverTime(): Promise<number>;
};

export const FOUND_LATER = "found";
export const LOOKED_AT = "looked at";
/** Readers overlap their loads by more, so that they miss no late row. */
export const SUPPRESSION_INSERT_SECONDS = 300;

/** Not before what readers have read: ClickHouse's clock may be set back. */
export const ADDED_AT = `greatest(now64(6),
  (SELECT fromUnixTimestamp64Micro(toInt64(maxIf(value, name = 'announced'))) FROM coordination))`;

const ADD = `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id, added_at)
  SELECT *, ${ADDED_AT} FROM input('client_id String, kind String, value String, version UInt64,
    created_before DateTime64(6, \\'UTC\\'), request_id String') FORMAT JSONEachRow`;

/** For records that slipped past: an operator inserted a suppression, or restored the table. */
export const SLIPPED = "added_at BETWEEN now64(6) - INTERVAL 1 DAY AND now64(6) - INTERVAL 10 MINUTE";

/** The secret stored first counts. */
export const FIRST_SECRET =
  "SELECT value FROM suppressions WHERE kind = 'secret' ORDER BY added_at, value LIMIT 1";

export function createSuppressionStore(deps: { readonly session: Session }): SuppressionStore {
  const session = deps.session.with({
    timeoutMs: 60_000,
    settings: {
      insert_deduplicate: 0,
      max_execution_time: SUPPRESSION_INSERT_SECONDS,
    },
  });

  const firstSecret = async (): Promise<string | undefined> => {
    const rows = await session.rows<{ value: string }>("suppressions.secret", FIRST_SECRET);
    return rows[0]?.value;
  };

  const add: SuppressionStore["add"] = async (suppressions) => {
    if (suppressions.length === 0) return;
    const rows = suppressions.map(({ clientId, kind, value, createdBefore, requestId }) =>
      JSON.stringify({
        client_id: clientId,
        kind,
        value,
        version: String(createdBefore),
        created_before: formatTimestampZ(createdBefore),
        request_id: requestId,
      }),
    );
    await session.upload("suppressions.add", ADD, Buffer.from(rows.join("\n")));
  };

  return {
    ...createSuppressionReads(session),
    add,
    addFound: (found) => add(found.map((one) => ({ ...one, requestId: FOUND_LATER }))),
    claimSecret: async (hash) => {
      const stored = await firstSecret();
      if (stored !== undefined) return stored;
      const row = {
        client_id: "",
        kind: "secret",
        value: hash,
        version: "0",
        created_before: formatTimestampZ(0),
        request_id: "",
      };
      await session.insert("suppressions.claim_secret", { table: "suppressions", rows: [row] });
      return (await firstSecret()) ?? hash;
    },
    serverTime: async () => {
      const [row] = await session.rows<{ ms: number }>(
        "suppressions.clock",
        "SELECT toUnixTimestamp64Milli(now64(3)) AS ms",
      );
      return Number(row?.ms);
    },
  };
}
