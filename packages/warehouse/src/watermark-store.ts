import { setTimeout as sleep } from "node:timers/promises";
import type { ClickHouseClient } from "@clickhouse/client";
import { formatTimestampZ, type Micros } from "@conversation-export/domain";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** The lists of which each has a watermark. */
export const LIST_NAMES = ["conversations", "messages", "end_users"] as const;
export type ListName = (typeof LIST_NAMES)[number];

/** Microseconds since the epoch; a list is missing while nothing is known about it. */
export type Watermarks = Readonly<Partial<Record<ListName, Micros>>>;

/** What export-api reads. Throws `WarehouseError`. */
export type WatermarkReader = {
  load(): Promise<Watermarks>;
  close(): Promise<void>;
};

/** What ingest writes. Throws `WarehouseError`. */
export type WatermarkWriter = WatermarkReader & {
  /**
   * A smaller one than the stored changes nothing. One that lies ahead of ClickHouse's clock by at most a second is
   * stored when the clock has reached it. false: it lies further ahead and is not stored.
   */
  save(list: ListName, instant: Micros): Promise<boolean>;
};

/** Clocks that are kept right differ by less. */
const MAX_AHEAD_MICROS = 1_000_000;

const isListName = (name: string): name is ListName => LIST_NAMES.some((list) => list === name);

const connectStore = (deps: WarehouseAccess): ClickHouseClient =>
  connect({ ...deps, maxOpenConnections: 2, requestTimeoutMs: 10_000 });

const loadWith = async (client: ClickHouseClient): Promise<Watermarks> => {
  try {
    const result = await client.query({
      query: "SELECT list, toString(max(version)) AS micros FROM watermarks GROUP BY list",
      format: "JSONEachRow",
    });
    const rows = await result.json<{ list: string; micros: string }>();
    return Object.fromEntries(
      rows.filter(({ list }) => isListName(list)).map(({ list, micros }) => [list, Number(micros)]),
    );
  } catch (error) {
    throw toWarehouseError(error);
  }
};

/** Microseconds from ClickHouse's clock to the instant; negative for one that has passed. */
const microsUntil = async (client: ClickHouseClient, instant: Micros): Promise<number> => {
  const result = await client.query({
    query: "SELECT toString({instant:Int64} - toUnixTimestamp64Micro(now64(6))) AS ahead",
    query_params: { instant },
    format: "JSONEachRow",
  });
  const [row] = await result.json<{ ahead: string }>();
  return Number(row?.ahead);
};

/** Connects the reading user. `url`: `http://user:password@host:port/database`. */
export function createWatermarkReader(deps: WarehouseAccess): WatermarkReader {
  const client = connectStore(deps);
  return { load: () => loadWith(client), close: () => client.close() };
}

/** Connects the writing user. `url`: `http://user:password@host:port/database`. */
export function createWatermarkWriter(deps: WarehouseAccess): WatermarkWriter {
  const client = connectStore(deps);
  return {
    load: () => loadWith(client),
    async save(list, instant) {
      try {
        const ahead = await microsUntil(client, instant);
        // The largest instant wins for good: one from a wrong clock would be claimed until it has come.
        if (ahead > MAX_AHEAD_MICROS) return false;
        if (ahead > 0) await sleep(Math.ceil(ahead / 1000));
        await client.insert({
          table: "watermarks",
          values: [{ list, version: instant, instant: formatTimestampZ(instant) }],
          format: "JSONEachRow",
          // The server puts the rows of all lists and processes together, so that few parts are made.
          clickhouse_settings: { async_insert: 1, wait_for_async_insert: 1 },
        });
        return true;
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
}
