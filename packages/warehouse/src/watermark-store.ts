import type { ClickHouseClient } from "@clickhouse/client";
import { formatTimestampZ, type Micros } from "@conversation-export/domain";
import { connect } from "./connection.ts";
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
  /** A smaller one than the stored changes nothing. */
  save(list: ListName, instant: Micros): Promise<void>;
};

const isListName = (name: string): name is ListName => LIST_NAMES.some((list) => list === name);

const connectStore = (deps: { readonly url: string; readonly application: string }): ClickHouseClient =>
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

/** Connects the reading user. `url`: `http://user:password@host:port/database`. */
export function createWatermarkReader(deps: {
  readonly url: string;
  readonly application: string;
}): WatermarkReader {
  const client = connectStore(deps);
  return { load: () => loadWith(client), close: () => client.close() };
}

/** Connects the writing user. `url`: `http://user:password@host:port/database`. */
export function createWatermarkWriter(deps: {
  readonly url: string;
  readonly application: string;
}): WatermarkWriter {
  const client = connectStore(deps);
  return {
    load: () => loadWith(client),
    async save(list, instant) {
      try {
        await client.insert({
          table: "watermarks",
          values: [{ list, version: instant, instant: formatTimestampZ(instant) }],
          format: "JSONEachRow",
          // The server puts the rows of all lists and processes together, so that few parts are made.
          clickhouse_settings: { async_insert: 1, wait_for_async_insert: 1 },
        });
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
}
