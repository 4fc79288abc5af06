import type { ClickHouseClient } from "@clickhouse/client";
import { formatTimestampZ, type Micros } from "@conversation-export/domain";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/**
 * Of what `value` is: the id of a record, or the keyed hash of an identifier of a person. `end_user`: the id of an end
 * user that a writer has found, until the next erasure has made a hash of it.
 */
export type SuppressionKind = "conversation" | "message" | "subject" | "end_user";

export type Suppression = {
  readonly clientId: string;
  readonly kind: SuppressionKind;
  readonly value: string;
  /** Records that were created earlier are dropped. */
  readonly createdBefore: Micros;
};

/** What was erased and must not come back. Throws `WarehouseError`. */
export type SuppressionStore = {
  /**
   * Gives every suppression to `take`, one that stands twice perhaps twice. `since`: only those that were added at or
   * after that instant, ms by the clock of ClickHouse; an INSERT of them runs for five minutes at most.
   */
  load(take: (suppression: Suppression) => void, since: number | null): Promise<void>;
  /** Resolves when ClickHouse has acknowledged the rows. */
  add(suppressions: readonly Suppression[], requestId: string): Promise<void>;
  /**
   * The hash of the secret that was stored first: `hash` when none was stored before. Another one means that the
   * hashes of `subject` cannot be compared.
   */
  claimSecret(hash: string): Promise<string>;
  /** ms since the epoch by the clock of ClickHouse. */
  serverTime(): Promise<number>;
  close(): Promise<void>;
};

/** `request_id` of what a writer has found. */
export const FOUND_LATER = "found";
/** `request_id` of what an erasure has looked at again. */
export const LOOKED_AT = "looked at";
/** For how long an INSERT of suppressions may run: readers go back further, so that none slips through behind them. */
export const SUPPRESSION_INSERT_SECONDS = 300;

/** `url`: `http://user:password@host:port/database` of a user that reads and inserts. */
export function createSuppressionStore(deps: WarehouseAccess): SuppressionStore {
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 60_000,
    settings: {
      async_insert: 0,
      insert_deduplicate: 0,
      max_execution_time: SUPPRESSION_INSERT_SECONDS,
    },
  });

  async function asked<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  async function select<T>(query: string): Promise<T[]> {
    return (await client.query({ query, format: "JSONEachRow" })).json<T>();
  }

  const insert = (values: readonly Record<string, unknown>[]): Promise<unknown> =>
    client.insert({ table: "suppressions", values, format: "JSONEachRow" });

  const firstSecret = async (): Promise<string | undefined> => {
    const rows = await select<{ value: string }>(
      "SELECT value FROM suppressions WHERE kind = 'secret' ORDER BY added_at, value LIMIT 1",
    );
    return rows[0]?.value;
  };

  return {
    load: (take, since) =>
      asked(async () => {
        const result = await client.query({
          query: `SELECT client_id, kind, value, toString(max(version)) FROM suppressions
            WHERE kind != 'secret' AND added_at >= fromUnixTimestamp64Milli({since:Int64})
            GROUP BY client_id, kind, value`,
          query_params: { since: Math.floor(since ?? 0) },
          format: "JSONCompactEachRow",
        });
        for await (const rows of result.stream<[string, SuppressionKind, string, string]>()) {
          for (const row of rows) {
            const [clientId, kind, value, version] = row.json();
            take({ clientId, kind, value, createdBefore: Number(version) });
          }
        }
      }),
    add: (suppressions, requestId) =>
      asked(async () => {
        if (suppressions.length === 0) return;
        await insert(
          suppressions.map(({ clientId, kind, value, createdBefore }) => ({
            client_id: clientId,
            kind,
            value,
            version: String(createdBefore),
            created_before: formatTimestampZ(createdBefore),
            request_id: requestId,
          })),
        );
      }),
    claimSecret: (hash) =>
      asked(async () => {
        const stored = await firstSecret();
        if (stored !== undefined) return stored;
        await insert([
          {
            client_id: "",
            kind: "secret",
            value: hash,
            version: "0",
            created_before: formatTimestampZ(0),
            request_id: "",
          },
        ]);
        return (await firstSecret()) ?? hash;
      }),
    serverTime: () =>
      asked(async () => {
        const rows = await select<{ ms: string | number }>("SELECT toUnixTimestamp64Milli(now64(3)) AS ms");
        return Number(rows[0]?.ms);
      }),
    close: () => client.close(),
  };
}
