import type { ClickHouseClient } from "@clickhouse/client";
import {
  type EventType,
  type Micros,
  type RecordTable,
  type StoredRow,
  TABLES_OF,
} from "@conversation-export/domain";
import { type ConnectionOptions, connect, type WarehouseAccess } from "./connection.ts";
import { createEveryServer } from "./every-server.ts";
import { createJobKeys } from "./job-keys.ts";
import { headersOfLanding } from "./landing-rows.ts";
import { type LandingSelection, landingCondition } from "./landing-selection.ts";
import type { Topology } from "./migration-template.ts";
import { KEY_COLUMNS, NOTED_RECORDS, type RecordName } from "./record-keys.ts";
import { contentDigestSql } from "./row-content.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** An event of the landing table. */
export type LandedEvent = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly clientId: string;
  readonly recordId: string;
  /** When the record was created, as it was read when the event landed. */
  readonly dateCreated: Micros;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly text: string;
};

/** Equally long stretches of what a selection is cut by. */
export type LandingCount = { readonly from: number; readonly to: number; readonly events: number };

/** Reads whole records, with all that landed and all that stands of them. Throws `WarehouseError`. */
export type RecordReader = {
  /** How many events of a selection stand in each stretch of `width`: µs, or offsets for a range of these. */
  count(selection: LandingSelection, width: number, signal: AbortSignal): Promise<readonly LandingCount[]>;
  /** Notes under `run` the records that have an event in the selection. */
  noteSelected(run: string, selection: LandingSelection, signal: AbortSignal): Promise<void>;
  note(run: string, records: readonly RecordName[], signal: AbortSignal): Promise<void>;
  /** All rows of the noted records by client and id, of one key and version in the order of insertion. */
  stored(
    run: string,
    type: EventType,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly StoredRow[]>>;
  /** All events of the noted records, those of one record together, in the order of their upload. */
  landed(run: string, type: EventType, signal: AbortSignal): AsyncIterable<readonly LandedEvent[]>;
  /** Removes what was noted under `run`. */
  forget(run: string): Promise<void>;
  close(): Promise<void>;
};

/** The name of a record in the answer of `stored`. */
export const recordKey = (clientId: string, id: string): string => `${clientId}\u0000${id}`;

type StoredValues = [
  client: string,
  id: string,
  date: number,
  target: string,
  kind: 0 | 1 | 2,
  version: string,
  uploadedAt: number,
  digest: string,
];
type LandedValues = [
  topic: string,
  partition: number,
  offset: number,
  client: string,
  id: string,
  dateCreated: number,
  headers: [name: string, value: string][],
  payload: string,
];

const storedSql = (table: RecordTable): string => {
  const { id, date } = KEY_COLUMNS[table];
  const [target, kind] = table === "handoffs" ? ["target", "toUInt8(target_kind)"] : ["''", "0"];
  // A part is named by its partition and the blocks in it: the order of insertion.
  return `SELECT client_id, ${id}, ${date === null ? "0" : `toUnixTimestamp64Micro(${date})`}, ${target}, ${kind},
      toString(version), toUnixTimestamp64Micro(uploaded_at), ${contentDigestSql(table)}
    FROM ${table} WHERE (client_id, ${id}) IN (${NOTED_RECORDS})
    ORDER BY toUInt64(splitByChar('_', _part)[2]), _part_offset`;
};

const LANDED_SQL = `SELECT topic, partition, offset, client_id, record_id, toUnixTimestamp64Micro(date_created),
    CAST(headers, 'Array(Tuple(String, String))'), payload
  FROM landing WHERE type = {type:String} AND (client_id, record_id) IN (${NOTED_RECORDS})
  ORDER BY client_id, record_id, uploaded_at`;

/** `url`: `http://user:password@host:port/database` of a user that may read, insert keys and remove them. */
export function createRecordReader(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): RecordReader {
  const connection: ConnectionOptions = {
    ...deps,
    maxOpenConnections: 8,
    requestTimeoutMs: 600_000,
    settings: {
      async_insert: 0,
      // A projection may show rows that are hidden in its table.
      optimize_use_projections: 0,
      // Events are sorted by record with all that they say.
      max_bytes_before_external_sort: "536870912",
    },
  };
  const client: ClickHouseClient = connect(connection);
  const servers = createEveryServer({ ...connection, topology: deps.topology });
  const keys = createJobKeys({ client, servers, topology: deps.topology });

  async function* rows<Row>(
    query: string,
    parameters: Record<string, unknown>,
    signal: AbortSignal,
  ): AsyncGenerator<Row[]> {
    try {
      const result = await client.query({
        query,
        query_params: parameters,
        format: "JSONCompactEachRow",
        abort_signal: signal,
      });
      for await (const chunk of result.stream<Row>()) yield chunk.map((row) => row.json<Row>());
      signal.throwIfAborted();
    } catch (error) {
      signal.throwIfAborted();
      throw toWarehouseError(error);
    }
  }

  return {
    async count(selection, width, signal) {
      const { sql, parameters, column } = landingCondition(selection);
      const counts: LandingCount[] = [];
      const query = `SELECT intDiv(${column}, {width:UInt64}) AS stretch, count() FROM landing WHERE ${sql}
        GROUP BY stretch ORDER BY stretch`;
      for await (const chunk of rows<[number, number]>(query, { ...parameters, width }, signal)) {
        for (const [stretch, events] of chunk) {
          counts.push({ from: stretch * width, to: (stretch + 1) * width, events });
        }
      }
      return counts;
    },
    async noteSelected(run, selection, signal) {
      const { sql, parameters } = landingCondition(selection);
      try {
        await client.command({
          query: `INSERT INTO job_keys (run_id, kind, client_id, id)
            SELECT DISTINCT {run:String}, type, client_id, record_id FROM landing WHERE ${sql}`,
          query_params: { ...parameters, run },
          abort_signal: signal,
        });
      } catch (error) {
        signal.throwIfAborted();
        throw toWarehouseError(error);
      }
    },
    async note(run, records, signal) {
      try {
        await client.insert({
          table: "job_keys",
          values: records.map(({ type, clientId, id }) => ({
            run_id: run,
            kind: type,
            client_id: clientId,
            id,
          })),
          format: "JSONEachRow",
          abort_signal: signal,
        });
      } catch (error) {
        signal.throwIfAborted();
        throw toWarehouseError(error);
      }
    },
    async stored(run, type, signal) {
      const records = new Map<string, StoredRow[]>();
      for (const table of TABLES_OF[type]) {
        for await (const chunk of rows<StoredValues>(storedSql(table), { run, type }, signal)) {
          for (const [clientId, id, date, target, targetKind, version, uploadedAt, digest] of chunk) {
            const name = recordKey(clientId, id);
            const row = { table, date, target, targetKind, version: BigInt(version), uploadedAt, digest };
            const known = records.get(name);
            if (known === undefined) records.set(name, [row]);
            else known.push(row);
          }
        }
      }
      return records;
    },
    async *landed(run, type, signal) {
      for await (const chunk of rows<LandedValues>(LANDED_SQL, { run, type }, signal)) {
        yield chunk.map(([topic, partition, offset, clientId, recordId, dateCreated, headers, text]) => ({
          topic,
          partition,
          offset,
          clientId,
          recordId,
          dateCreated,
          headers: headersOfLanding(headers),
          text,
        }));
      }
    },
    async forget(run) {
      try {
        await keys.forget(run);
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: async () => {
      await client.close();
      await servers.close();
    },
  };
}
